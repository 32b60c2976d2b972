"""BuildKit's trace reads like the output of the engine's older builder."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from agent.runtime.buildkit_output import buildkit_output, plain_error
from agent.runtime.docker_buildkit import _told
from agent.runtime.port import Output
from agent.runtime.protobuf import bytes_field, number_field
from agent.work.masked_output import MaskedOutput

TIME = number_field(1, 1_700_000_000)


def vertex(
    digest: str,
    name: str,
    *,
    cached: bool = False,
    begun: bool = False,
    ended: bool = False,
    error: str = "",
) -> bytes:
    parts = [
        bytes_field(1, digest.encode()),
        bytes_field(2, b"input"),
        bytes_field(3, name.encode()),
    ]
    parts += [number_field(4, 1)] if cached else []
    parts += [bytes_field(5, TIME)] if begun or ended else []
    parts += [bytes_field(6, TIME)] if ended else []
    parts += [bytes_field(7, error.encode())] if error else []
    return bytes_field(1, b"".join(parts))


def printed(digest: str, text: str) -> bytes:
    stamp, stream = bytes_field(2, TIME), number_field(3, 1)
    body = bytes_field(1, digest.encode()) + stamp + stream + bytes_field(4, text.encode())
    return bytes_field(3, body)


def trace(*parts: bytes) -> dict[str, Any]:
    status = bytes_field(2, bytes_field(1, b"layer"))
    encoded = base64.b64encode(b"".join((status, *parts))).decode()
    return {"id": "moby.buildkit.trace", "aux": encoded}


def read(*items: dict[str, Any]) -> tuple[str, list[int], str, bool]:
    outputs = list(buildkit_output(iter(items)))
    return (
        "".join(output.text for output in outputs),
        [output.progress for output in outputs if output.progress is not None],
        "".join(output.error for output in outputs),
        any(output.is_last for output in outputs),
    )


def test_steps_output_and_progress_are_told_in_order() -> None:
    first, second = "[1/2] FROM docker.io/library/busybox", "[2/2] RUN make"
    text, progress, error, is_over = read(
        trace(vertex("i", "[internal] load build definition", begun=True)),
        trace(vertex("a", first), vertex("b", second)),
        trace(vertex("a", first, begun=True, ended=True, cached=True)),
        trace(vertex("b", second, begun=True)),
        trace(printed("b", "one\ntw")),
        trace(printed("b", "o\nthree"), vertex("b", second, ended=True)),
        {"id": "moby.image.id", "aux": {"ID": "sha256:1"}},
        {"stream": "Successfully tagged x\n"},
    )
    assert text == (
        "Step 1/2 : FROM docker.io/library/busybox\n ---> Using cache\n"
        "Step 2/2 : RUN make\none\ntwo\nthree\nSuccessfully tagged x\n"
    )
    assert (progress[0], progress[-1]) == (50, 99)
    assert progress == sorted(progress)
    assert (error, is_over) == ("", True)


def test_lines_of_steps_side_by_side_stay_whole_and_stages_are_named() -> None:
    one, two = "[first 2/2] RUN one", "[second 2/2] RUN two"
    text, *_ = read(
        trace(vertex("a", one, begun=True), vertex("b", two, begun=True)),
        trace(printed("a", "aa"), printed("b", "bb")),
        trace(printed("b", "BB\n"), printed("a", "AA\n")),
    )
    assert text.splitlines() == [
        "Step 2/2 : [first] RUN one",
        "Step 2/2 : [second] RUN two",
        *("bbBB", "aaAA"),
    ]


def test_a_failure_is_told_once_with_what_was_printed_before() -> None:
    step = "[1/1] RUN false"
    text, progress, error, is_over = read(
        trace(vertex("a", step, begun=True), printed("a", "no newline")),
        trace(vertex("a", step, ended=True, error="exit code: 1")),
        {"errorDetail": {}, "error": "executor failed running [/bin/sh -c false]: exit code: 1"},
        {"stream": "never read"},
    )
    assert text == "Step 1/1 : RUN false\nno newline\n"
    assert error == "The command '/bin/sh -c false' returned a non-zero code: 1"
    assert (progress, is_over) == ([], False)


@pytest.mark.parametrize("aux", ["no base64!", "////", "", {"a": 1}, None])
def test_a_trace_that_makes_no_sense_tells_nothing(aux: object) -> None:
    assert read({"id": "moby.buildkit.trace", "aux": aux}) == ("", [], "", False)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            (
                "failed to solve with frontend dockerfile.v0: failed to create LLB definition: "
                "dockerfile parse error line 3: unknown instruction: RUM"
            ),
            "dockerfile parse error line 3: unknown instruction: RUM",
        ),
        (
            (
                "failed to solve: rpc error: code = Unknown desc = executor failed running "
                "[/bin/sh -c a [b]]: exit code: 3"
            ),
            "The command '/bin/sh -c a [b]' returned a non-zero code: 3",
        ),
        (
            'failed to solve: process "/bin/sh -c a" did not complete successfully: exit code: 2',
            "The command '/bin/sh -c a' returned a non-zero code: 2",
        ),
        ("something else", "something else"),
        ("executor failed running []: exit code: x", "executor failed running []: exit code: x"),
    ],
)
def test_an_error_is_told_without_the_layers_it_came_through(said: str, told: str) -> None:
    assert plain_error(said) == told


@pytest.mark.parametrize("begin", ["executor failed running [", 'process "', "]: exit code: "])
def test_a_long_error_is_read_at_once(begin: str) -> None:
    said = begin * (1_000_000 // len(begin))
    started = time.thread_time()
    assert plain_error(said) == said.strip()
    # Of this thread's own time: backtracking takes minutes of it.
    assert time.thread_time() - started < 1


def test_no_secret_lies_across_two_pieces_of_a_long_line() -> None:
    canary = "canary-" + "7f3a" * 500
    one, two = "[a 1/1] RUN one", "[b 1/1] RUN two"
    items = [trace(vertex("a", one, begun=True), vertex("b", two, begun=True))]
    for _ in range(40):
        for at in range(0, len(canary) * 3, 1000):
            items.append(trace(printed("a", f"{canary}x{canary}{canary}"[at : at + 1000])))
            items.append(trace(printed("b", "of another step\n")))
    written: list[str] = []
    masked = MaskedOutput(written.append, [canary])
    outputs = list(buildkit_output(iter(items), [canary]))
    assert max(len(output.text) for output in outputs[:-40]) > 50_000
    for output in outputs:
        masked.write(output.text)
    masked.flush()
    assert "7f3a" not in "".join(written)
    assert "".join(written).count("of another step\n") > 200


class Session:
    missing = ("optional", "token")


@pytest.mark.parametrize(
    ("error", "named"),
    [
        ("The command 'make' returned a non-zero code: 2", ""),
        ("the optional step failed", "optional"),
        ("secret token: not available", "token"),
        ("tokens are wrong", ""),
        ("failed to solve: secret Not Found", "optional"),
    ],
)
def test_only_an_error_about_a_secret_is_blamed_on_one(error: str, named: str) -> None:
    session: Any = Session()
    (told,) = _told(iter([Output(error=error)]), session)
    assert told.error.startswith(f"The Dockerfile mounts the build secret {named}, ") == bool(
        named
    )
    assert error in told.error
