"""What a build adds from elsewhere is fetched by the agent, and handed to the engine as a file."""

from __future__ import annotations

import hashlib
import threading
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

from agent.protocol import naming
from agent.runtime.fake import FakeRuntime
from tests.agent.build_scene import IMAGE, Build
from tests.agent.fake_fetch import FakeAnswer, FakeFetcher
from tests.agent.fake_server import HOST_ID, HOST_KEY
from tests.agent.http_scene import OTHER_PUBLIC, PUBLIC, World, listening, redirects, says
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from pathlib import Path

    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch

DATE = "Tue, 15 Nov 1994 12:45:26 GMT"


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


def test_an_import_that_ends_behind_its_build_leaves_nothing(tmp_path: Path) -> None:
    asked, release = threading.Event(), threading.Event()

    class SlowEngine(FakeRuntime):
        def import_files(self, ref: str, archive: Iterable[bytes]) -> None:
            parts = list(archive)
            asked.set()
            release.wait(20)
            super().import_files(ref, parts)

    fetcher = FakeFetcher({"http://a.test/x": FakeAnswer(body=b"x")})
    runtime = SlowEngine()
    build = Build(fetcher, tmp_path / "s", "ADD http://a.test/x /x", runtime=runtime)

    def cancel() -> None:
        asked.wait(10)
        build.work.cancel("by alice")

    threading.Thread(target=cancel, daemon=True).start()
    assert build.work.run() is not None
    build.work.tidy(1)
    release.set()
    last = ["import_files", "remove_image"]
    eventually(lambda: runtime.mutations[-2:] == last, 10)
    assert not any(IMAGE in image.tags for image in runtime.images.values())
    assert runtime.built == []


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


def test_an_argument_that_only_the_agent_sees_is_filled_in(tmp_path: Path) -> None:
    fetcher = FakeFetcher({"http://a.test/2": FakeAnswer(body=b"x")})
    build = Build(
        fetcher, tmp_path / "s", "ARG V=1", "ADD http://a.test/$V /x", build_args={"V": "2"}
    )
    assert build.run() == ("finished", "")
    (sent,) = build.runtime.built
    assert sent.filled_in == {"busybox": frozenset({"V"})}
