"""What a Dockerfile fetches from elsewhere is found, however it is written; nothing else is."""

from __future__ import annotations

import pytest

from agent.protocol.dockerfile import lines_problem
from agent.protocol.remote_sources import (
    BadSource,
    Source,
    adds,
    parse_source,
    sources_problem,
    stage_variables,
)

HERE = "http://127.0.0.1:9/x"
GIVEN = {"GIVEN": HERE, "HOST": "127.0.0.1"}
DIGEST = "sha256:" + "ab" * 32


def remote(dockerfile: str, given: dict[str, str] | None = None, target: str = "") -> list[str]:
    assert lines_problem(dockerfile) == ""
    return [
        source.url for add in adds(dockerfile, given or GIVEN, target) for source in add.remote
    ]


@pytest.mark.parametrize(
    "lines",
    [
        f"ADD {HERE} /x",
        f"add\t{HERE}  /x",
        f"\u00a0ADD {HERE} /x",
        f"ADD --chown=1:1 --chmod=755 {HERE} /x",
        f'ADD --chown="1:1" {HERE} /x',
        f'ADD ["{HERE}", "/x"]',
        'ADD ["\\u0068ttp://127.0.0.1:9/x", "/x"]',
        f'ADD --chown=1 [ "{HERE}" , "/x" ]',
        f'ADD "{HERE}" /x',
        f"ADD '{HERE}' /x",
        'ADD ht"tp"://127.0.0.1:9/x /x',
        "ADD h\\ttp://127.0.0.1:9/x /x",
        "ARG GIVEN\nADD ''$GIVEN\"\" /x",
        f"ADD \\\n# why\n\n  {HERE} \\\n /x",
        "ADD ht\\\ntp://127.0.0.1:9/x /x",
        f"ARG A={HERE}\nADD $A /x",
        f'ARG A="{HERE}"\nADD ${{A}} /x',
        f"ARG A=1 B={HERE}\nADD $B /x",
        "ARG GIVEN\nADD $GIVEN /x",
        "ARG GIVEN=https://good.example/\nADD $GIVEN /x",
        f"ENV A={HERE}\nADD $A /x",
        f"ENV A {HERE}\nADD $A /x",
        f"ENV A='{HERE}'\nADD ${{A}} /x",
        "ARG HOST\nENV AT=$HOST:9\nADD http://$AT/x /x",
        f"ARG A\nADD ${{A:-{HERE}}} /x",
        f"ARG HOST\nADD ${{HOST:+{HERE}}} /x",
        "ARG A=htt\nADD ${A}p://127.0.0.1:9/x /x",
        f"ENV A={HERE}\nARG A=file\nADD $A /x",
    ],
)
def test_an_address_is_found_in_every_spelling(lines: str) -> None:
    assert remote(f"FROM busybox\n{lines}\n") == [HERE]
    assert "127.0.0.1 is an address of this machine" in sources_problem(
        f"FROM busybox\n{lines}\n", GIVEN
    )


@pytest.mark.parametrize(
    "text",
    [
        f"ARG A={HERE}\nFROM busybox\nARG A\nADD $A /x",
        f"FROM busybox AS one\nENV A={HERE}\nFROM one AS two\nFROM Two\nADD $A /x",
        "# escape=`\nFROM busybox\nADD h`ttp://127.0.0.1:9/x `\n /x",
        f"\ufeffFROM busybox\nADD {HERE} /x",
        f"FROM busybox\nADD {HERE} /x\r\n",
        f"FROM a AS x\nADD {HERE} /x\nFROM b",
    ],
)
def test_an_address_is_found_in_every_stage(text: str) -> None:
    assert remote(text) == [HERE]


def test_the_sources_of_a_target_end_with_its_stage() -> None:
    text = "".join(f"FROM busybox AS s{n}\nADD http://h{n}.example/ /\n" for n in range(3))
    for target, count in {"s0": 1, "0": 1, "S1": 2, "1": 2, "": 3, "none": 3}.items():
        assert len(remote(text, target=target)) == count


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ("ADD $UNKNOWN /x", "Line 2 of the Dockerfile: it is not clear what $UNKNOWN is"),
        ("ADD http://h.example/$TARGETARCH /x", "not clear"),
        ("ARG TARGETARCH\nADD http://h.example/$TARGETARCH /x", "Line 3 of the Dockerfile"),
        ("ARG TARGETARCH=amd64\nADD http://h.example/$TARGETARCH /x", "not clear"),
        ("RUN true\nADD ${A:?b} /x", "Line 3 of the Dockerfile: it is not clear"),
        ("ARG A=b\nADD ${A#b} /x", "not clear"),
        ("ARG A=b\nADD ${A/b/http:} /x", "not clear"),
        ("ARG A=b\nADD $1 /x", "not clear"),
        ("ARG A=b\nADD ${A /x", "not clear"),
        ("ARG A\nADD ${A-http://127.0.0.1/} /x", "not clear"),
        ("ARG A=b\nARG A\nADD $A /x", "not clear"),
        ("ENV $X=1\nARG A=file\nADD $A /x", "not clear"),
        ("ARG A\u00e9=http://127.0.0.1/ A=b\nADD $A\u00e9 /x", "not clear"),
        ("ENV A=$UNKNOWN\nADD $A /x", "not clear"),
        ("ONBUILD ENV A=b\nARG A=c\nADD $A /x", "not clear"),
        ('ADD "http://h.example/ x" /x', "not clear"),
        ("ADD [http://h.example/, /x]", "not clear what it adds"),
        ('ADD ["http://h.example/", "/x"] z', "not clear what it adds"),
        ('ADD --chown="1 http://127.0.0.1/" x /x', "not clear what it adds"),
        ("ADD --chown=\\ http://127.0.0.1/ /x", "not clear what it adds"),
        ("ADD --chown=\u00e0http://127.0.0.1/ x /x", "not clear what it adds"),
        ("ADD -- http://127.0.0.1/ /x", "not clear what it adds"),
        ("ADD --keep-git-dir=true http://h.example/x /x", "--keep-git-dir is not possible"),
        ("ADD --unpack=true http://h.example/x /x", "--unpack is not possible"),
        ("ADD --checksum=sha256:12 http://h.example/x /x", "write --checksum=sha256:"),
        (f"ADD --checksum={DIGEST} http://a.example/ http://b.example/ /x/", "one source"),
        ("ADD http://h.example/x here.txt /x/", "Write an ADD for each kind"),
        ("ONBUILD ADD http://h.example/x /x", "Line 2 of the Dockerfile: Only an ADD of the"),
        ("ONBUILD ADD $X /x", "Only an ADD of the Dockerfile itself"),
        ("onbuild\tadd --chown=1 HTTP://h.example/ /x", "Only an ADD of the Dockerfile itself"),
    ],
)
def test_what_only_an_engine_knows_is_refused_by_its_line(lines: str, part: str) -> None:
    problem = sources_problem(f"FROM busybox\n{lines}\n", {})
    assert part in problem
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "source",
    [
        "git@github.com:moby/buildkit.git",
        "user@h.example:x",
        "git://h.example/x",
        "GIT://h.example/x",
        "ssh://git@h.example/x",
        "https://h.example/x.git",
        "https://h.example/x.git#main",
        "https://h.example/x.git?ref=main",
        "HTTP://h.example/x.git",
        "Https://h.example/x",
        "file:///etc/passwd",
        "ftp://h.example/x",
        "docker-image://busybox",
    ],
)
def test_repositories_and_other_protocols_are_refused(source: str) -> None:
    problem = sources_problem(f"FROM busybox\nRUN true\nADD {source} /x\n", {}, ["0.0.0.0/0"])
    assert problem.startswith("Line 3 of the Dockerfile: ")
    assert "RUN step" in problem


@pytest.mark.parametrize(
    "lines",
    [
        "ADD . /app",
        "ADD a b c /app/",
        "ADD --chown=app:app --chmod=755 a.tar.gz /",
        'ADD --chown="app:app" a /',
        'ADD ["a b", "/x y"]',
        "ADD ./$UNKNOWN /x",
        "ADD dir/${A#b} /x",
        "ADD /$UNKNOWN/http://x /x",
        "ADD ./http://h.example/ /x",
        "ADD file $UNKNOWN",
        "ADD a:b /x",
        "ADD app*.t[a-z]r /x",
        "COPY $UNKNOWN /x",
        "RUN wget http://127.0.0.1/",
        "ONBUILD ADD . /app",
        "ONBUILD COPY . /app",
        "# ADD http://127.0.0.1/ /x",
    ],
)
def test_files_of_the_build_stay_as_they_are(lines: str) -> None:
    text = f"FROM busybox\n{lines}\n"
    assert sources_problem(text, {}) == ""
    assert list(adds(text, {})) == []


def test_a_variable_that_names_a_file_is_known_by_its_value() -> None:
    text = "ARG V=1\nFROM busybox AS x\nARG V\nENV N=app-$V\nADD --chown=1 $N.tgz /x\n"
    (add,) = adds(text, {"V": "2"})
    assert (add.sources, add.remote, add.flags) == (("app-2.tgz",), (), ("--chown=1",))
    assert (add.first, add.last, add.destination) == (4, 4, "/x")
    assert (add.base, add.arguments) == ("busybox", frozenset({"V"}))


def test_what_the_engine_would_do_with_it_is_kept() -> None:
    text = f"FROM a:1\nADD --chown=1:$G --checksum={DIGEST} \\\n http://u:p@h.example/a?b#c $D/x\n"
    (add,) = adds(text, {})
    assert (add.flags, add.checksum, add.destination) == (("--chown=1:$G",), DIGEST, "$D/x")
    assert (add.first, add.last, add.base) == (1, 2, "a:1")
    (source,) = add.remote
    assert (source.url, source.user) == ("http://h.example/a?b", "u:p")


@pytest.mark.parametrize(
    ("path", "classic", "buildkit"),
    [
        ("/a/file.tgz", "file.tgz", "file.tgz"),
        ("/a/file.tgz?download=1", "file.tgz", "file.tgz"),
        ("/a/b%20c", "b c", "b c"),
        ("/a/", "", "a"),
        ("/", "", ""),
        ("", "", ""),
    ],
)
def test_the_file_is_named_as_by_the_builder(path: str, classic: str, buildkit: str) -> None:
    source = parse_source(f"https://h.example{path}")
    assert source.file_name(buildkit=False) == classic
    assert source.file_name(buildkit=True) == buildkit


@pytest.mark.parametrize("path", ["/a/..", "/.", "/a%00b", "/" + "a" * 256, "/x/%2e%2e"])
def test_a_name_that_is_no_files_is_refused(path: str) -> None:
    with pytest.raises(BadSource, match="no name for a file"):
        parse_source(f"https://h.example{path}").file_name(buildkit=False)


HOSTILE = [
    "http://127.0.0.1/", "http://127.0.0.1:5000/v2/", "https://127.8.8.8/", "http://localhost/",
    "http://LOCALHOST:80/", "http://a.localhost/", "http://localhost./", "http://0.0.0.0/",
    "http://127.1/", "http://0/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/",
    "http://0177.0.0.1/", "http://127.0.0.1./", "http://[::1]/", "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://[fe80::1%25eth0]/", "http://[fe80::1]/", "http://[fd00:ec2::254]/",
    "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/",
    "http://[::ffff:a9fe:a9fe]/", "http://168.63.129.16/", "http://100.100.100.200/",
    "http://10.0.0.1/", "http://172.17.0.1:2375/", "http://192.168.1.1/", "http://100.64.0.1/",
    "http://198.18.0.1/", "http://224.0.0.1/", "http://255.255.255.255/",
    "http://h.example@127.0.0.1/", "http://h.example:80@127.0.0.1:80/",
    "http://h.example%40@127.0.0.1/", "http://a@b@127.0.0.1/", "http://h.example#@127.0.0.1:0/",
    "http://127.0.0.1#@h.example/", "http://127.0.0.1?@h.example/", "http://127.0.0.1\\@h.example/",
    "http://127。0。0。1/", "http://①②⑦.0.0.1/", "http://loc%61lhost/", "http://%3127.0.0.1/",
    "http://h.example:99999/", "http://h.example:0/", "http://:80/", "http:///x", "http://",
    "http://-a/", "http://a..b/", "http://[::1", "http://1.2.3.4.5/",
]  # fmt: skip


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_address_is_refused_without_asking_anybody(url: str) -> None:
    text = f"FROM busybox\nADD {url.replace(chr(92), chr(92) * 2)} /x\n"
    if url == "http://h.example#@127.0.0.1:0/":
        assert remote(text) == ["http://h.example"]
        return
    problem = sources_problem(text, {})
    assert problem.startswith("Line 2 of the Dockerfile: ")
    assert problem.endswith(".")


def test_a_list_opens_what_it_names_and_a_wrong_one_says_so() -> None:
    text = "FROM busybox\nADD http://10.1.2.3/x /x\nADD http://localhost:8000/ /y/\n"
    assert sources_problem(text, {}, ["10.1.0.0/16", "localhost:8000"]) == ""
    assert "Line 3 of" in sources_problem(text, {}, ["10.1.0.0/16", "localhost:8001"])
    assert "Line 2 of" in sources_problem(text, {}, ["localhost"])
    assert "entry that means nothing: ftp://x" in sources_problem(text, {}, ["ftp://x"])


def test_the_variables_that_triggers_set_are_named() -> None:
    assert stage_variables(["RUN true", "ENV A=1 B=2", "ARG C", "env D e"]) == frozenset("ABCDe")
    assert stage_variables(['ENV "A"=1']) is None


def test_a_source_shows_no_password() -> None:
    source = parse_source("https://me:s3cret@h.example/x")
    assert "s3cret" not in source.url
    assert "s3cret" not in repr(source)
    assert isinstance(source, Source)
