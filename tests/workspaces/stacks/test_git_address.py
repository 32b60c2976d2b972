"""The server fetches from public addresses, and elsewhere only where an administrator said so."""

from __future__ import annotations

import itertools

import pytest

from workspaces.stacks.git.address import parse_repository, reachable_addresses
from workspaces.stacks.git.source import checked_branch, checked_path, file_paths
from workspaces.stacks.git.types import GitError, GitRefused

PUBLIC = "140.82.112.3"

# Every way to write an address that must not be reached, each tried with each scheme.
FORBIDDEN_HOSTS = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1",
    "017700000001", "127.0.0.1.", "0", "0.0.0.0", "127.255.255.254", "10.0.0.1", "10.1",
    "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.168.257", "169.254.169.254",
    "169.254.169.254.", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "100.64.0.1",
    "100.100.100.200", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "[::1]", "[::]", "[0:0::1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]",
    "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::]", "[2001:0:7f00:1::]",
    "[2001:db8::1]", "[100::1]", "[::127.0.0.1]",
]  # fmt: skip
NOT_A_REPOSITORY = [
    "", "x", "/etc/passwd", "./repo", "../repo", "-u/x", "--upload-pack=touch /tmp/x", "-oProxy=x",
    "ext::sh -c touch% /tmp/x", "fd::17/foo", "git://host/repo", "ftp://host/repo",
    "javascript:alert(1)", "data:text/plain,x", "gopher://host/x", "dict://host/x", "HTTPS:/host",
    "https://", "https:///repo", "https://host", "https://host/", "https://@host/r",
    "https://user@host/r", "https://user:pw@host/r", "https://a:b@c@host/r", "ssh://u:pw@host/r",
    "ssh://-oProxyCommand=x/r", "ssh://-u@host/r", "-u@host:r", "u@-oProxy:r", "https://-h/r",
    "https://ho st/r", "https://host\\@evil/r", "https://host\t/r", "https://host\n/r",
    "https://host/r\n", "https://host/\x00", "https://höst/r", "https://ho%73t/r", "https://a..b/r",
    "https://host/a/../b", "https://host/%2e%2e/b", "https://host/r?x=1", "https://host/r#x",
    "https://host/r?", "https://host:0x50/r", "https://host:99999/r", "https://host:-1/r",
    "https://[::1/r", "https://[host]/r", "https://host/$(touch x)", "https://host/`id`",
    "https://host/a;b", "https://host/a|b", "https://host/a&b", "https://host/'a'", "u@h:../r",
    'https://host/"a"', "https://host/a b", "https://host/*", "https://host/{a,b}", "https://h/<a>",
    "ssh://host/~u'/r", "user@host:", "user@host::r", "a:b@host:r", "file://host/r", "file://",
    "file:///a/../b", "https://" + "a" * 64 + "/r", "https://h/" + "a" * 2000, "http+unix://x/r",
]  # fmt: skip


def refusal(url: str, allow: tuple[str, ...] = (), found: tuple[str, ...] | None = None) -> str:
    with pytest.raises(GitError) as caught:
        reachable_addresses(
            parse_repository(url), allow, (lambda _host, _port: found) if found else None
        )
    return caught.value.message


@pytest.mark.parametrize("url", NOT_A_REPOSITORY)
def test_what_is_not_a_plain_address_of_a_repository_is_refused(url: str) -> None:
    with pytest.raises(GitRefused):
        parse_repository(url)


@pytest.mark.parametrize(
    ("scheme", "host"), list(itertools.product(["https", "ssh"], FORBIDDEN_HOSTS))
)
def test_no_way_of_writing_it_leads_to_a_private_address(scheme: str, host: str) -> None:
    """Resolved by the machine's own resolver, as it happens in earnest."""
    assert refusal(f"{scheme}://{host}/team/repo.git")


@pytest.mark.parametrize("private", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "fd00::1"])
def test_a_name_that_leads_inside_is_refused_even_beside_a_public_address(private: str) -> None:
    message = refusal("https://inside.example.com/r", found=(PUBLIC, private))
    assert "inside.example.com is an address of a private network" in message
    assert "TRAILER_GIT_ALLOW" in message


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://GitHub.com/team/repo.git", "https://github.com:443/team/repo.git"),
        ("https://github.com./team/repo", "https://github.com:443/team/repo"),
        ("https://git.example.com:8443/a/b", "https://git.example.com:8443/a/b"),
        ("ssh://git@example.com/team/repo", "ssh://git@example.com:22/team/repo"),
        ("ssh://example.com:2222/repo", "ssh://git@example.com:2222/repo"),
        ("git@example.com:team/repo.git", "ssh://git@example.com:22/team/repo.git"),
    ],
)
def test_a_public_repository_is_reached_at_the_addresses_that_were_checked(
    url: str, canonical: str
) -> None:
    address = parse_repository(url)
    assert address.url == canonical
    assert reachable_addresses(address, (), lambda _host, _port: (PUBLIC,)) == (PUBLIC,)


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("git.internal", "https://git.internal/r"),
        ("git.internal", "ssh://git.internal:2222/r"),
        ("git.internal:8443", "https://git.internal:8443/r"),
        ("https://git.internal", "https://git.internal/r"),
        ("10.0.0.0/8", "https://anything.example.com/r"),
        ("10.1.2.3", "https://anything.example.com/r"),
        ("http://git.internal", "http://git.internal:3000/r"),
        ("http://git.internal", "https://git.internal/r"),
    ],
)
def test_an_administrator_can_allow_a_place_inside(entry: str, url: str) -> None:
    address = parse_repository(url)
    assert reachable_addresses(address, (entry,), lambda _host, _port: ("10.1.2.3",))


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("git.internal", "https://git.internal.evil.com/r"),
        ("git.internal", "https://evil-git.internal/r"),
        ("git.internal:8443", "https://git.internal/r"),
        ("git.internal", "http://git.internal/r"),
        ("10.0.0.0/8", "http://git.internal/r"),
        ("https://git.internal", "http://git.internal/r"),
        ("10.9.0.0/16", "https://git.internal/r"),
        ("file:///srv", "https://git.internal/r"),
    ],
)
def test_what_is_allowed_is_exactly_that(entry: str, url: str) -> None:
    assert refusal(url, (entry,), ("10.1.2.3",))


def test_plain_http_and_files_need_leave_even_on_public_addresses() -> None:
    assert "over http are read only where" in refusal("http://example.com/r", (), (PUBLIC,))
    assert "over file are read only where" in refusal("file:///srv/git/a")
    assert "over file are read only where" in refusal("file:///srv/gitx/a", ("file:///srv/git",))
    allowed = parse_repository("file:///srv/git/a")
    assert reachable_addresses(allowed, ("file:///srv/git",)) == ()


def test_ports_of_other_services_are_refused() -> None:
    assert "Port 25" in refusal("https://example.com:25/r", (), (PUBLIC,))


def test_an_entry_that_means_nothing_is_named() -> None:
    assert "means nothing: ftp://x" in refusal(
        "https://h.example.com/r", ("ftp://x",), ("10.1.1.1",)
    )


@pytest.mark.parametrize(
    "branch",
    ["", "-", "--all", "-x", "a b", "a..b", "a~1", "a^", "a:b", "a?b", "a*", "a[b", "a\\b", "/a",
     "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "@", "a@{1}", "a\nb", "a\0b",
     "a\x7f", "a" * 201],
)  # fmt: skip
def test_what_git_would_not_call_a_branch_is_refused(branch: str) -> None:
    with pytest.raises(GitRefused):
        checked_branch(branch)


@pytest.mark.parametrize("branch", ["main", "release/1.2", "feature/a-b_c", "@a", "ümlaut", "a@b"])
def test_branches_of_all_sorts_are_taken(branch: str) -> None:
    assert checked_branch(branch) == branch


@pytest.mark.parametrize("path", ["../x", "a/../../b", ".git", "a/.GIT/b", "a\\b", "a\nb", "-x/y"])
def test_a_path_that_leaves_the_repository_is_refused(path: str) -> None:
    with pytest.raises(GitRefused):
        checked_path(path)


@pytest.mark.parametrize("path", ["", ".", "./", "/"])
def test_the_top_folder_has_many_names(path: str) -> None:
    assert checked_path(path) == ""


def test_the_files_are_looked_for_in_their_order_or_named_outright() -> None:
    assert file_paths("./deploy/") == (
        ("deploy/trailer.yml", "deploy/compose.yaml", "deploy/docker-compose.yml"),
        "deploy/trailer.vars.yml",
    )
    assert file_paths("deploy/prod.yaml") == (("deploy/prod.yaml",), "deploy/trailer.vars.yml")
