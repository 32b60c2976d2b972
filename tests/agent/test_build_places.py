"""No build reaches what its host reaches and the internet does not, unless an operator says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from agent.host_policy import HostPolicy, load_policy
from agent.protocol.state import HostSettings
from tests.agent.build_scene import REF, Build
from tests.agent.documents import document, image
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
    from collections.abc import Iterator
    from pathlib import Path

    from agent.protocol.state import DesiredImage
    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch


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
        "255.255.255.255", "0x7f.0x0.0x0.0x1", "127.0.0.01",
        "[0:0:0:0:0:0:0:1]", "[::ffff:0:0]", "1.2.3.4.5", "127.0.0.1%00.site.test", "a@127.0.0.1",
        "site.test@127.0.0.1", "site.test:80@127.0.0.1",
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
    assert len(hostile) >= 60
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
