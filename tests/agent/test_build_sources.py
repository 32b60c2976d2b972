"""What a build adds from elsewhere comes through the agent, from judged addresses only."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.engine_requests import BuildRequest
from agent.fetch.registry import RegistryGate
from agent.host_policy import HostPolicy, load_policy
from agent.protocol import naming
from agent.protocol.state import HostSettings
from agent.runtime.fake import FakeRuntime
from agent.steps import BuildImage
from agent.work.images import ImageWork
from agent.work.sources import Sources
from tests.agent.documents import document, image
from tests.agent.fake_fetch import FakeAnswer, FakeFetcher
from tests.agent.fake_server import HOST_ID, HOST_KEY
from tests.agent.http_scene import (
    OTHER_PUBLIC,
    PUBLIC,
    Listener,
    World,
    listening,
    redirects,
    says,
)
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from agent.fetch.port import Fetcher
    from agent.protocol.state import DesiredImage
    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch

REF = "trailer/i-app:latest"
IMAGE = naming.sources_image("m")
DATE = "Tue, 15 Nov 1994 12:45:26 GMT"


class Build:
    def __init__(
        self,
        fetcher: Fetcher,
        folder: Path,
        *lines: str,
        allow: tuple[str, ...] = (),
        **given: Any,
    ) -> None:
        self.runtime = FakeRuntime()
        self.log: list[str] = []
        self.folder = folder
        dockerfile = "\n".join(("FROM busybox", *lines, ""))
        step = BuildImage(
            image_id="i-app",
            key="image:i-app",
            name="app",
            cause="wanted",
            build_id="b-app",
            request=BuildRequest(ref=REF, dockerfile=dockerfile, mark="m", **given),
        )
        self.work = ImageWork(
            step,
            self.runtime,
            timeout=20,
            write=self.log.append,
            on_progress=lambda _: None,
            registries=RegistryGate(FakeFetcher()),
            sources=Sources(fetcher=fetcher, scratch=folder, allow=allow),
        )

    def run(self) -> tuple[str, str]:
        ended = self.work.run()
        self.work.tidy(1)
        assert ended is not None
        assert not self.folder.exists() or list(self.folder.iterdir()) == []
        return ended.status, ended.message

    def files(self) -> Mapping[str, tuple[tarfile.TarInfo, bytes]]:
        with tarfile.open(fileobj=io.BytesIO(self.runtime.imported[IMAGE])) as archive:
            return {
                entry.name: (entry, archive.extractfile(entry).read())  # type: ignore[union-attr]
                for entry in archive
            }


def test_what_was_fetched_is_handed_over_as_an_engine_would_have_written_it(
    tmp_path: Path,
) -> None:
    body = bytes(range(256)) * 5000
    with listening(says(body, "200 OK", f"Last-Modified: {DATE}")) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        build = Build(
            world.fetcher(), tmp_path / "s", "ADD http://site.test/a/b%20c.tgz?x=1 /x", "RUN true"
        )
        assert build.run() == ("finished", "")
    ((name, (entry, content)),) = build.files().items()
    assert (name, content) == ("source0/b c.tgz", body)
    assert (entry.mode, entry.uid, entry.gid) == (0o600, 0, 0)
    assert entry.mtime == 784903526
    (sent,) = build.runtime.built
    assert f'COPY --from={IMAGE} ["/source0/*", "/x"]\n' in sent.dockerfile
    assert "http://" not in sent.dockerfile
    assert "Fetching http://site.test/a/b%20c.tgz?x=1\n" in build.log
    # Nothing stays of it.
    assert not any(IMAGE in image.tags for image in build.runtime.images.values())


def test_several_sources_have_folders_of_their_own(tmp_path: Path) -> None:
    fetcher = FakeFetcher(
        {
            "http://a.test/x": FakeAnswer(body=b"1"),
            "http://b.test/x": FakeAnswer(body=b"2"),
            "http://c.test/": FakeAnswer(body=b"3"),
        }
    )
    build = Build(
        fetcher,
        tmp_path / "s",
        "ADD http://a.test/x http://b.test/x /d/",
        "ADD http://c.test/ /e",
    )
    assert build.run() == ("finished", "")
    found = {name: content for name, (_, content) in build.files().items()}
    assert found == {"source0/x": b"1", "source1/x": b"2", "source2/__unnamed__": b"3"}
    assert all(entry.mtime == 0 for entry, _ in build.files().values())


def test_a_name_that_the_address_lacks_is_the_servers(tmp_path: Path) -> None:
    named = FakeAnswer(headers={"content-disposition": 'attachment; filename="a.txt"'})
    build = Build(
        FakeFetcher({"http://a.test/d/": named}), tmp_path / "s", "ADD http://a.test/d/ /x/"
    )
    assert build.run() == ("finished", "")
    assert list(build.files()) == ["source0/a.txt"]
    nameless = FakeFetcher({"http://a.test/d/": FakeAnswer()})
    build = Build(nameless, tmp_path / "s", "ADD http://a.test/d/ /x/")
    assert "no file name" in build.run()[1]
    # BuildKit takes the last part of the address.
    secret = {"token": "canary"}
    build = Build(nameless, tmp_path / "s", "ADD http://a.test/d/ /x/", secrets=secret)
    assert build.run() == ("finished", "")
    assert list(build.files()) == ["source0/d"]


def test_a_checksum_is_compared(tmp_path: Path) -> None:
    good, bad = (hashlib.sha256(text).hexdigest() for text in (b"good", b"bad"))
    fetcher = FakeFetcher({"http://a.test/x": FakeAnswer(body=b"good")})
    line = "ADD --checksum=sha256:{} http://a.test/x /x"
    assert Build(fetcher, tmp_path / "s", line.format(good)).run() == ("finished", "")
    status, message = Build(fetcher, tmp_path / "s", line.format(bad)).run()
    assert status == "failed"
    assert f"Its checksum is sha256:{good}, not sha256:{bad}." in message


def test_no_more_comes_than_the_host_takes(tmp_path: Path) -> None:
    handle = says(b"x" * 6000)
    with listening(handle) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        lines = [f"ADD http://site.test/{n} /{n}" for n in range(2)]
        build = Build(world.fetcher(), tmp_path / "s", *lines, most_bytes=10000)
        status, message = build.run()
    assert status == "failed"
    assert message.startswith("Line 3 of the Dockerfile: http://site.test/1 could not be fetched.")
    assert "the build has more than 10000 bytes, which is what this host takes" in message
    assert build.runtime.built == []


def test_an_answer_that_is_no_file_fails_the_build(tmp_path: Path) -> None:
    with listening(says(b"no", "404 Not Found")) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        build = Build(world.fetcher(), tmp_path / "s", "ADD http://site.test/x /x")
        status, message = build.run()
    assert status == "failed"
    assert message == (
        "Line 2 of the Dockerfile: http://site.test/x could not be fetched. "
        "The server answered 404."
    )


def test_a_password_goes_to_its_own_server_only_and_into_no_log(tmp_path: Path) -> None:
    with (
        listening(says(b"theirs")) as other,
        listening(redirects("http://other.test/x")) as server,
    ):
        world = World(
            {"site.test": [PUBLIC], "other.test": [OTHER_PUBLIC]},
            {(PUBLIC, 80): server, (OTHER_PUBLIC, 80): other},
        )
        build = Build(world.fetcher(), tmp_path / "s", "ADD http://me:s%33cret@site.test/x /x")
        assert build.run() == ("finished", "")
        basic = b64encode(b"me:s3cret").decode()
        assert f"Authorization: Basic {basic}\r\n" in server.heads[0]
        assert "Authorization" not in other.heads[0]
    assert not any("cret" in text for text in build.log)


def test_cancelling_ends_a_fetch_that_waits(tmp_path: Path) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(_: socket.socket, __: bytes) -> None:
        asked.set()
        release.wait(20)

    with listening(hang) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        build = Build(world.fetcher(), tmp_path / "s", "ADD http://site.test/x /x")

        def cancel() -> None:
            asked.wait(10)
            build.work.cancel("by alice")

        threading.Thread(target=cancel, daemon=True).start()
        assert build.run() == ("cancelled", "Cancelled: by alice.")
        release.set()
    assert build.runtime.built == []


def test_a_silent_server_ends_the_build_by_the_hosts_limit(tmp_path: Path) -> None:
    release = threading.Event()

    def hang(_: socket.socket, __: bytes) -> None:
        release.wait(20)

    with listening(hang) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        build = Build(world.fetcher(), tmp_path / "s", "ADD http://site.test/x /x", idle_timeout=1)
        status, _ = build.run()
        release.set()
    assert status == "failed"
    assert build.runtime.built == []


def test_a_build_without_sources_asks_nobody_and_makes_no_image(tmp_path: Path) -> None:
    fetcher = FakeFetcher()
    build = Build(fetcher, tmp_path / "s", "ADD . /x", "COPY a b")
    assert build.run() == ("finished", "")
    assert (fetcher.requests, build.runtime.imported) == ([], {})


@pytest.mark.parametrize("ending", ["fails", "breaks off"])
def test_what_was_fetched_goes_however_the_build_ends(tmp_path: Path, ending: str) -> None:
    fetcher = FakeFetcher({"http://a.test/x": FakeAnswer(body=b"x")})
    build = Build(
        fetcher, tmp_path / "s", "ADD http://a.test/x /x", "# FAIL" if ending == "fails" else "#"
    )
    build.runtime.broken_builds = 1 if ending == "breaks off" else 0
    assert (build.work.run() is None) is (ending == "breaks off")
    assert IMAGE in build.runtime.imported
    build.work.tidy(1)
    assert not any(IMAGE in image.tags for image in build.runtime.images.values())


def test_what_a_killed_agent_left_is_cleared(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    """With the build's containers, by the next cycle of whoever comes next."""
    agent = launch()
    mark = naming.build_mark(HOST_KEY, "i-gone", HOST_ID)
    left = runtime.add_image(naming.sources_image(mark))
    agent.supervisor.parts.journal.steps_begun("i-gone", push_to="")
    fake_server.desire(volumes=())
    eventually(lambda: left not in runtime.images, 10, "the image is still there")


def asked(*lines: str) -> DesiredImage:
    text = "\n".join(("FROM busybox", *lines))
    return image("app", ref=REF, kind="build", done=False, dockerfile=text, reference="")


def test_an_agent_fetches_what_its_server_allows(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch, tmp_path: Path
) -> None:
    with listening(says(b"allowed")) as files:
        fake_server.settings = msgspec.structs.replace(
            fake_server.settings, build_allow=("127.0.0.0/8",)
        )
        fake_server.desire(images=(asked(f"ADD http://127.0.0.1:{files.port}/x /x"),))
        launch()
        eventually(
            lambda: (b := fake_server.build("b-app")) and b.status == "finished",
            10,
            "the build does not finish",
        )
        assert len(files.heads) == 1
    (imported,) = runtime.imported.values()
    assert b"allowed" in imported
    assert b"Fetching http://127.0.0.1" in fake_server.book.logs["b-app"]


def test_an_agent_refuses_a_literal_address_before_anything_is_asked(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch, trap: Listener
) -> None:
    fake_server.desire(images=(asked(f"ADD http://127.0.0.1:{trap.port}/x /x"),))
    launch()
    eventually(
        lambda: (b := fake_server.build("b-app")) and b.status == "failed",
        10,
        "the build does not fail",
    )
    build = fake_server.build("b-app")
    assert build is not None
    assert build.message.startswith("Line 2 of the Dockerfile: 127.0.0.1 is an address of this")
    assert (trap.connections, runtime.built) == (0, [])


def test_a_hosts_policy_takes_entries_out_of_the_servers_list(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('build_allow = ["files.internal"]\n')
    policy = load_policy(tmp_path / "policy.toml", required=True, kept_paths=())
    given = HostSettings(build_allow=("127.0.0.1", "files.internal"))
    assert policy.settings(given).build_allow == ("files.internal",)
    assert HostPolicy().settings(given).build_allow == given.build_allow
    state = msgspec.structs.replace(
        document(images=(asked("ADD http://127.0.0.1:9/x /x"),)), settings=given
    )
    assert list(policy.refusals(state, resolve=str)) == ["image:i-app"]
    assert not HostPolicy().refusals(state, resolve=str)


@pytest.fixture
def trap() -> Iterator[Listener]:
    """Listens on loopback, and shall never be reached."""
    with listening(says(b"the host's own")) as found:
        yield found


def _hostile(port: int) -> list[str]:
    hosts = [
        "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1",
        "017700000001", "127.0.0.1.", "0", "0.0.0.0", "localhost", "LOCALHOST.", "a.localhost",
        "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]", "[::127.0.0.1]", "[fe80::1]", "[fd00::1]", "169.254.169.254",
        "168.63.129.16", "10.0.0.1", "172.17.0.1", "192.168.0.1", "100.64.0.1", "224.0.0.1",
        "255.255.255.255", "a@127.0.0.1", "site.test@127.0.0.1", "site.test:80@127.0.0.1",
        "127。0。0。1", "①②⑦.0.0.1", "127.0.0.1%2f", "loop.test", "loop6.test", "mapped.test",
        "metadata.test", "mixed.test", "private.test", "nat64.test", "own.test", "zone.test",
    ]  # fmt: skip
    urls = [f"http://{host}:{port}/x" for host in hosts]
    return [
        *urls,
        *(f"https://{host}:{port}/x" for host in ("127.0.0.1", "localhost", "loop.test")),
        f"file://127.0.0.1:{port}/x",
        "file:///etc/passwd",
        f"ftp://127.0.0.1:{port}/x",
        f"git://127.0.0.1:{port}/x.git",
        f"ssh://git@127.0.0.1:{port}/x",
        "git@127.0.0.1:x.git",
        f"HTTP://127.0.0.1:{port}/x.git",
        f"http://127.0.0.1:{port}/x.git#main",
        f"http://site.test\\\\@127.0.0.1:{port}/x",
    ]


NAMES = {
    "site.test": [PUBLIC],
    "localhost": ["127.0.0.1"],
    "loop.test": ["127.0.0.1"],
    "loop6.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "private.test": ["10.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "own.test": [OTHER_PUBLIC],
    "zone.test": ["fe80::1%eth0"],
}


def test_no_spelling_of_a_host_reaches_what_listens_here(trap: Listener, tmp_path: Path) -> None:
    hostile = _hostile(trap.port)
    assert len(hostile) >= 55
    for url in hostile:
        world = World(dict(NAMES), {})
        build = Build(world.fetcher(own=[OTHER_PUBLIC]), tmp_path / "s", f"ADD {url} /x")
        status, message = build.run()
        assert (status, url) == ("failed", url)
        assert message.startswith("Line 2 of the Dockerfile: ")
        assert message.endswith(".")
        assert world.connected == []
        assert build.runtime.built == []
        assert not any("own" in text for text in build.log if "own.test" not in text)
    assert trap.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_reaches_what_listens_here(
    trap: Listener, tmp_path: Path, status: int
) -> None:
    for host in ("127.0.0.1", "[::1]", "loop.test", "metadata.test", "2130706433", "mixed.test"):
        answer = says(b"", f"{status} Moved", f"Location: http://{host}:{trap.port}/x")
        with listening(answer) as server:
            world = World(dict(NAMES), {(PUBLIC, 80): server})
            build = Build(world.fetcher(), tmp_path / "s", "ADD http://site.test/x /x")
            assert build.run()[0] == "failed"
            assert world.connected == [(PUBLIC, 80)]
    assert trap.connections == 0


def test_a_name_that_changes_its_answer_is_held_to_the_judged_one(
    trap: Listener, tmp_path: Path
) -> None:
    """Only the first answer is public; whoever looked up a second time would come here."""

    class Rebinding(World):
        def resolve(self, host: str, port: int) -> list[str]:
            super().resolve(host, port)
            return [PUBLIC] if self.asked.count(host) == 1 else ["127.0.0.1"]

    with listening(says(b"theirs")) as server:
        world = Rebinding({"turn.test": []}, {(PUBLIC, trap.port): server})
        build = Build(world.fetcher(), tmp_path / "s", f"ADD http://turn.test:{trap.port}/x /x")
        assert build.run() == ("finished", "")
        assert [content for _, content in build.files().values()] == [b"theirs"]
        assert world.asked == ["turn.test"]
        again = redirects(f"http://turn.test:{trap.port}/y")
    with listening(again) as server:
        world = Rebinding({"turn.test": []}, {(PUBLIC, trap.port): server})
        build = Build(world.fetcher(), tmp_path / "s", f"ADD http://turn.test:{trap.port}/x /x")
        status, message = build.run()
    assert status == "failed"
    assert "turn.test leads to 127.0.0.1" in message
    assert "TRAILER_BUILD_ALLOW" in message
    assert trap.connections == 0


def test_what_the_list_allows_is_fetched(tmp_path: Path) -> None:
    with listening(says(b"allowed")) as server:
        world = World({"files.internal": ["127.0.0.1"]}, {})
        lines = [f"ADD http://files.internal:{server.port}/x /x"]
        for allow in ((f"files.internal:{server.port}",), ("127.0.0.0/8",)):
            build = Build(world.fetcher(), tmp_path / "s", *lines, allow=allow)
            assert build.run() == ("finished", "")
            assert [content for _, content in build.files().values()] == [b"allowed"]
        build = Build(world.fetcher(), tmp_path / "s", *lines, allow=("10.0.0.0/8",))
        assert build.run()[0] == "failed"


def test_an_argument_that_only_the_agent_sees_is_filled_in(tmp_path: Path) -> None:
    fetcher = FakeFetcher({"http://a.test/2": FakeAnswer(body=b"x")})
    build = Build(
        fetcher, tmp_path / "s", "ARG V=1", "ADD http://a.test/$V /x", build_args={"V": "2"}
    )
    assert build.run() == ("finished", "")
    (sent,) = build.runtime.built
    assert sent.filled_in == {"busybox": frozenset({"V"})}
