"""Looks at what a container wrote: shared, bounded, and only of our own containers."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import clock
from agent.errors import EngineUnavailable
from agent.protocol.sessions import BUSY, LAYER, NOT_THERE
from agent.protocol.writable_layer import SECONDS, WritableLayer, WrittenPath
from agent.runtime.session_port import Change, PathChange, PathFacts
from agent.sessions import layers
from agent.sessions.layers import written_paths
from tests.agent.session_scene import SessionScene, Stream
from tests.ground.wait import eventually


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[SessionScene]:
    scene = SessionScene(tmp_path)
    yield scene
    scene.stop()


def told(stream: Stream) -> WritableLayer:
    end = stream.ended()
    assert end.error == ""
    return msgspec.json.decode(stream.output, type=WritableLayer)


def test_the_files_are_told_largest_first_without_folders_and_mounts(scene: SessionScene) -> None:
    scene.runtime.mount_targets = ("/data",)
    scene.runtime.written[scene.container] = {
        "/root": None,
        "/root/small": 5,
        "/root/large": 500,
        "/data": None,
        "/data/kept": 10_000,
        "/database": 7,
    }
    scene.runtime.deleted[scene.container] = ["/bin/vi", "/data/old"]
    assert told(scene.server.open(LAYER)) == WritableLayer(
        size_bytes=512,
        file_count=3,
        deleted_count=1,
        paths=(
            WrittenPath(path="/root/large", size_bytes=500),
            WrittenPath(path="/database", size_bytes=7),
            WrittenPath(path="/root/small", size_bytes=5),
        ),
    )


def test_at_most_two_hundred_paths_are_looked_at_and_twenty_told(scene: SessionScene) -> None:
    files: dict[str, int | None] = {f"/usr/lib/deep/{number}": 1 for number in range(900)}
    scene.runtime.written[scene.container] = {**files, "/mine": 50}
    calls = scene.runtime.calls
    held = told(scene.server.open(LAYER))
    assert scene.runtime.calls - calls <= 203
    assert (held.size_bytes, held.file_count, held.is_whole) == (950, 901, False)
    assert (held.paths[0].path, len(held.paths)) == ("/mine", 20)


def test_a_workspace_without_a_container_of_ours_has_nothing_to_look_at(
    scene: SessionScene,
) -> None:
    scene.runtime.add_container("trailer-other", labels={"trailer.workspace": "w-other"})
    end = scene.server.open(LAYER, workspace_id="w-other").ended()
    assert end.code == NOT_THERE


def test_an_engine_that_answers_no_size_in_time_is_told_as_such(
    scene: SessionScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(container_id: str, path: str) -> PathFacts:
        raise EngineUnavailable("The container engine did not answer in time.")

    monkeypatch.setattr(scene.runtime, "path_facts", silent)
    scene.runtime.written[scene.container] = {"/mine": 50}
    end = scene.server.open(LAYER).ended()
    assert (end.code, end.error) == (BUSY, "The container engine did not answer in time.")


def test_when_the_time_is_up_what_was_looked_at_is_told_with_the_size_of_all(
    scene: SessionScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    answer = scene.runtime.path_facts

    def slow(container_id: str, path: str) -> PathFacts:
        looked_at.append(path)
        if len(looked_at) >= 10:
            monkeypatch.setattr(clock, "monotonic", lambda: float("inf"))
        return answer(container_id, path)

    monkeypatch.setattr(scene.runtime, "path_facts", slow)
    scene.runtime.written[scene.container] = {f"/file{number}": 3 for number in range(100)}
    held = told(scene.server.open(LAYER))
    assert (held.size_bytes, held.file_count, held.is_whole) == (300, 100, False)
    assert 10 <= len(held.paths) < 20


def test_those_who_ask_at_once_share_one_look(
    scene: SessionScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, looks = threading.Event(), []
    answer = scene.runtime.container_changes

    def held_up(container_id: str) -> Any:
        looks.append(container_id)
        goes_on.wait(10)
        return answer(container_id)

    monkeypatch.setattr(scene.runtime, "container_changes", held_up)
    scene.runtime.written[scene.container] = {"/mine": 50}
    streams = [scene.server.open(LAYER) for _ in range(30)]
    for stream in streams:
        stream.opened()
    goes_on.set()
    assert {told(stream).size_bytes for stream in streams} == {50}
    assert len(looks) < len(streams)


def test_looks_take_no_room_from_terminals_and_are_bounded_themselves(
    scene: SessionScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    answer = scene.runtime.container_changes

    def held_up(container_id: str) -> Any:
        goes_on.wait(10)
        return answer(container_id)

    monkeypatch.setattr(scene.runtime, "container_changes", held_up)
    streams = [scene.server.open(LAYER) for _ in range(70)]
    eventually(lambda: any(stream.end for stream in streams), 5, "none was refused")
    scene.server.open("exec", command=("sh",)).opened()
    goes_on.set()
    ends = [stream.ended().code for stream in streams]
    assert ends.count(BUSY) == 6


@pytest.mark.parametrize(
    ("mounts", "left"),
    [
        ((), ["/a/b", "/ab", "/etc/passwd"]),
        (("/a/",), ["/ab", "/etc/passwd"]),
        (("/",), []),
        (("/etc", "/ab"), ["/a/b"]),
    ],
)
def test_what_lies_below_a_mount_or_is_the_engines_own_is_left_out(
    mounts: tuple[str, ...], left: list[str]
) -> None:
    paths = ["/a", "/a/b", "/ab", "/etc", "/etc/hosts", "/etc/passwd", "/.dockerenv", "/dev/null"]
    changes = [PathChange(path, Change.ADDED) for path in paths]
    assert written_paths([*changes, PathChange("/a/gone", Change.DELETED)], mounts)[0] == left


def test_the_answer_comes_before_the_server_stops_waiting() -> None:
    assert layers._LIMIT < SECONDS
