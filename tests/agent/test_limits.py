"""Limits of long work: time, silence, size, number, length of lines; and what breaks off."""

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.protocol.state import BuildFile, DesiredBuild, DesiredImage
from agent.runtime.fake import FakeRuntime
from agent.server.http import HttpServer
from agent.steps import CancelBuild
from agent.work.log_lines import LineCutter
from agent.work.log_shipper import HEAD_BYTES, TAIL_BYTES, LogShipper
from tests.agent.documents import image, tombstone, workspace
from tests.agent.fake_server import TOKEN, FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import always, eventually

BUILT = "trailer/i-app:latest"
TARGET = "reg.example:5000/team/app:1"


def build(name: str = "app", **fields: Any) -> DesiredImage:
    given = {"kind": "build", "done": False, "dockerfile": "FROM x", "reference": "", **fields}
    return image(name, ref=f"trailer/i-{name}:latest", **given)


def limit(server: FakeServer, **fields: Any) -> None:
    server.settings = msgspec.structs.replace(server.settings, **fields)


def ends(server: FakeServer, build_id: str, status: str) -> str:
    eventually(
        lambda: (b := server.build(build_id)) and b.status == status,
        10,
        f"{build_id} is not {status}: {server.build(build_id)}",
    )
    ended = server.build(build_id)
    assert ended is not None
    return ended.message


# --- time, silence, size, number ---


def test_a_build_that_takes_too_long_is_ended(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    limit(fake_server, build_timeout=1.0)
    fake_server.desire(images=(build(),))
    launch()
    message = ends(fake_server, "b-app", "failed")
    assert message == "Stopped after 1 second, the host's limit."
    eventually(lambda: message.encode() in fake_server.book.logs["b-app"])


def test_a_build_that_prints_nothing_is_ended(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    limit(fake_server, build_idle_timeout=1.0)
    fake_server.desire(images=(build(),))
    launch()
    message = ends(fake_server, "b-app", "failed")
    assert message == "Stopped because it printed nothing for 1 second."


def test_too_many_bytes_are_refused_before_they_are_sent(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    limit(fake_server, build_context_bytes=1000)
    big = (BuildFile(path="big.txt", content="x" * 2000),)
    fake_server.desire(images=(build(files=big),))
    launch()
    message = ends(fake_server, "b-app", "failed")
    assert message == "The build's files have 2006 bytes; this host takes 1000."
    assert "build_image" not in runtime.mutations


def test_pulls_do_not_wait_for_builds(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    runtime.registry["reg.example/more:1"] = "sha256:more"
    limit(fake_server, build_parallel=1)
    fake_server.desire(images=tuple(build(f"b{n}") for n in range(3)))
    launch()
    eventually(lambda: runtime.mutations.count("build_image") == 1)
    more = image("more", ref="reg.example/more:1", done=False)
    fake_server.desire(images=(*(build(f"b{n}") for n in range(3)), more))
    ends(fake_server, "b-more", "finished")
    assert runtime.mutations.count("build_image") == 1


def test_a_build_that_waits_for_its_turn_is_cancelled_at_once(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    limit(fake_server, build_parallel=1)
    fake_server.desire(images=(build("b0"),))
    launch()
    eventually(lambda: runtime.mutations.count("build_image") == 1)
    fake_server.desire(images=(build("b0"), build("b1")))
    eventually(lambda: "b1" in {step.name for c in fake_server.cycles() for step in c.steps})
    cancelled = build("b1", build=DesiredBuild(id="b-b1", number=1, cancel=True))
    fake_server.desire(images=(build("b0"), cancelled))
    assert ends(fake_server, "b-b1", "cancelled") == "Cancelled before it began."
    assert runtime.mutations.count("build_image") == 1


def test_builds_that_wait_for_their_turn_say_so_until_they_begin(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    limit(fake_server, build_parallel=1)
    fake_server.desire(images=(build("b0"), build("b1"), build("b2")))
    launch()

    def told() -> set[tuple[str, str]]:
        known = [fake_server.build(f"b-b{n}") for n in range(3)]
        return {(b.status, b.message) for b in known if b}

    one = "Waiting for its turn: this host does one build at a time."
    eventually(lambda: told() == {("building", ""), ("pending", one)}, 10)
    limit(fake_server, build_parallel=2)
    two = "Waiting for its turn: this host does 2 builds at a time."
    eventually(lambda: told() == {("building", ""), ("pending", two)}, 10)
    limit(fake_server, build_parallel=3)
    eventually(lambda: told() == {("building", "")}, 10)


def test_a_raised_limit_lets_the_next_one_begin(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    limit(fake_server, build_parallel=1)
    fake_server.desire(images=(build("b0"), build("b1")))
    launch()
    eventually(lambda: runtime.mutations.count("build_image") == 1)
    always(lambda: runtime.mutations.count("build_image") == 1, 0.3, "two at once")
    limit(fake_server, build_parallel=2)
    eventually(lambda: runtime.mutations.count("build_image") == 2, 5)


def test_a_build_that_the_engine_breaks_off_is_no_success_and_is_done_again(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    # An older image is there: its presence must not pass for a result.
    runtime.add_image(BUILT, image_id="sha256:older")
    runtime.broken_builds = 1
    fake_server.desire(images=(build(),))
    launch()
    ends(fake_server, "b-app", "finished")
    result = fake_server.build("b-app")
    assert result is not None
    assert result.engine_id == runtime.inspect_image(BUILT).id != "sha256:older"
    assert b"broke off in the middle" in fake_server.book.logs["b-app"]
    # Only the second try looks for what the first one left.
    assert [v for v in runtime.mutations if v.startswith(("build", "remove_build"))] == [
        *("build_image", "remove_build_containers", "build_image")
    ]


def test_an_engine_that_breaks_off_each_time_is_told(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.broken_builds = 99
    fake_server.desire(images=(build(),))
    launch()
    message = ends(fake_server, "b-app", "failed")
    assert message == "The engine broke off 3 times in the middle of it."
    assert runtime.mutations.count("build_image") == 3


# --- cancel ---


def test_a_cancelled_flood_is_told_before_all_that_it_printed(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    """Whoever cancels waits for the end; the rest of the output comes after it, and whole."""
    runtime.endless_builds, runtime.endless_text = True, "y\n" * (2 << 20)
    fake_server.log_seconds = 0.1
    fake_server.desire(images=(build(),))
    launch()
    eventually(lambda: fake_server.book.logs.get("b-app"), 20)
    fake_server.desire(images=(build(build=DesiredBuild(id="b-app", number=1, cancel=True)),))
    ends(fake_server, "b-app", "cancelled")
    took = fake_server.book.requests.count("POST /builds/b-app/log")
    # Sixteen would carry all of it.
    assert took < 12
    fake_server.log_seconds = 0.0
    result = fake_server.build("b-app")
    assert result is not None
    log = fake_server.book.logs
    eventually(lambda: len(log["b-app"]) == result.log_bytes, 20, "the rest never came")
    assert log["b-app"] == runtime.endless_text.encode() + b"Cancelled: cancel requested.\n"


def test_a_cancel_does_not_wait_for_an_engine_that_answers_nothing_else(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    fake_server.desire(images=(build(),))
    launch()
    eventually(lambda: fake_server.book.logs.get("b-app"), 20)
    runtime.failing["observe"] = 1_000_000
    fake_server.desire(images=(build(build=DesiredBuild(id="b-app", number=1, cancel=True)),))
    assert ends(fake_server, "b-app", "cancelled") == "Cancelled: cancel requested."


def test_a_cancel_that_comes_after_the_end_changes_nothing(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(build(),))
    agent = launch()
    ends(fake_server, "b-app", "finished")
    works = agent.supervisor.parts.works
    assert works.wait_idle(20)
    cancel = CancelBuild(
        key="image:i-app", name="app", cause="late", image_id="i-app", build_id="b-app"
    )
    works.cancel(cancel)
    works.cut_short([cancel])
    result = agent.supervisor.parts.journal.build_result("b-app")
    assert result is not None
    assert result.status == "finished"


# --- output ---


def shipper(server: FakeServer) -> LogShipper:
    server.epoch = 1
    return LogShipper(HttpServer(server.url, token=TOKEN), "b", epoch=lambda: 1)


def test_a_line_that_comes_in_pieces_is_cut_once() -> None:
    cutter = LineCutter(10)
    pieces = ["12345", "67890", "abc", "def\nnext", "\n", "x" * 30 + "\r\n", "\n"]
    assert "".join(cutter.cut(piece) for piece in pieces) == (
        "1234567890 … 6 characters cut\nnext\nxxxxxxxxxx … 20 characters cut\n\n"
    )
    assert cutter.cut("a\nb\r50%\r") + cutter.cut("1234567") + cutter.cut("8901\n") == (
        "a\nb\r50%\r1234567890 … 1 characters cut\n"
    )


@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(st.text("ab\n\r", max_size=30), max_size=6))
def test_however_output_is_broken_the_same_lines_are_cut(pieces: list[str]) -> None:
    cutter, whole = LineCutter(8), LineCutter(8)
    output = "".join(pieces)
    # One that cuts line by line: its first piece is too long for a quick look.
    slowly = whole.cut("c" * 99 + "\n" + output).partition("\n")[2]
    assert "".join(map(cutter.cut, pieces)) == slowly


@pytest.mark.parametrize(
    "piece",
    ["y\n" * 200, "y" * 5000, "\x00\ud800\x1b[31m\n" * 50, "z" * 16_384 + "\n"],
    ids=["yes", "one endless line", "binary", "long lines"],
)
def test_endless_output_stays_within_bounds_while_the_server_is_away(
    fake_server: FakeServer, piece: str
) -> None:
    fake_server.answers["/builds/b/log"] = (503, b"")
    ship = shipper(fake_server)
    for _ in range(24 * 1024 * 1024 // len(piece)):
        ship.write(piece)
        assert ship.held_bytes <= HEAD_BYTES + TAIL_BYTES + 20_000
    fake_server.answers["/builds/b/log"] = (404, b"{}")
    ship.close(patience=5)


def test_many_small_pieces_cost_no_more_than_their_bytes(fake_server: FakeServer) -> None:
    fake_server.answers["/builds/b/log"] = (503, b"")
    ship = shipper(fake_server)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(30_000):
        ship.write("y\n")
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 700_000
    fake_server.answers["/builds/b/log"] = (404, b"{}")
    ship.close(patience=5)


def test_a_flood_is_sent_in_few_batches_and_a_lone_line_at_once(fake_server: FakeServer) -> None:
    ship = shipper(fake_server)
    ship.write("first\n")
    eventually(lambda: fake_server.book.logs.get("b") == b"first\n", 0.2, interval=0.005)
    for _ in range(20_000):
        ship.write("yes\n")
    ship.close(patience=10)
    assert fake_server.book.logs["b"] == b"first\n" + b"yes\n" * 20_000
    assert fake_server.book.requests.count("POST /builds/b/log") <= 8


# --- removal ---


def test_an_image_that_a_container_uses_waits_without_a_failure(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    wanted = build(dockerfile="FROM y")
    web = workspace(image_ref=wanted.ref, image_id=wanted.id, desired_state="running")
    fake_server.desire(images=(wanted,), workspaces=(web,))
    launch()
    reaches(fake_server, "running")
    order = tombstone("image", wanted.id, wanted.ref)
    stopped = workspace(image_ref=wanted.ref, image_id="", desired_state="stopped", revision=2)
    fake_server.desire(workspaces=(stopped,), tombstones=(order,))
    reaches(fake_server, "stopped", revision=2)
    eventually(lambda: (t := fake_server.tombstone(order.id)) and "Still used" in t.message)
    assert fake_server.tombstone(order.id).message == "Still used by trailer-web."  # type: ignore[union-attr]
    assert "remove_image" not in runtime.mutations
    gone = tombstone("workspace", "w-web", "trailer-web")
    fake_server.desire(tombstones=(order, gone))
    eventually(lambda: (t := fake_server.tombstone(order.id)) and t.done, 5)
    assert wanted.ref not in {tag for i in runtime.images.values() for tag in i.tags}
