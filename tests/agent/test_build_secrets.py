"""Secrets of builds: what a Dockerfile may say beside them, and that they show up nowhere."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from agent.host_policy import HostPolicy
from agent.protocol.build_secrets import build_problem, secrets_mark
from agent.protocol.compare import MASK
from agent.steps import BuildImage
from agent.work.masked_output import MaskedOutput
from tests.agent.documents import document
from tests.agent.test_limits import build, ends
from tests.ground.effort import lines_run
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.bench import Bench
    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch

CANARY = "canary-build-11aa"
MOUNT = "FROM x\nRUN --mount=type=secret,id=token true\n"


@pytest.mark.parametrize(
    ("dockerfile", "part"),
    [
        ("# syntax=docker/dockerfile:1\nFROM x", "frontend"),
        ("#SYNTAX = a/b\nFROM x", "frontend"),
        ("\ufeff# syntax=a\nFROM x", "frontend"),
        ("#!/usr/bin/x\n# escape=`\n#syntax=a\nFROM x", "frontend"),
        ("// syntax=a\nFROM x", "frontend"),
        ('{"syntax": "a"}', "frontend"),
        ('#!x\n{"syntax": "evil.example/frontend:1"}', "frontend"),
        ('\ufeff#!\n\n {"SYNTAX": "a"}', "frontend"),
        ("FROM x\nRUN <<EOF\necho\nEOF\n", "here-documents"),
        ("FROM x\nCOPY <<-'E\\' /a\nE\\\nFROM y\n", "here-documents"),
        ("FROM x\nRUN cat 3<<E\nE\n", "here-documents"),
        ("FROM x\nRUN --mount=type=cache,target=/c true", "type cache"),
        ("FROM x\nRUN --mount=target=/c,TYPE=Cache true", "type cache"),
        ("FROM x\nRUN --mount=type=tmpfs,target=/a --mount=type=ssh true", "type ssh"),
        ("FROM x\nONBUILD RUN --mount=type=cache,target=/c true", "type cache"),
        ("FROM x\nRUN \\\n # why\n --mount=type=cache,target=/c true", "type cache"),
    ],
)
def test_a_dockerfile_with_secrets_may_not_reach_beyond_them(dockerfile: str, part: str) -> None:
    problem = build_problem(dockerfile, {}, {"token"})
    assert part in problem
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "dockerfile",
    [
        MOUNT,
        "FROM x\nRUN --mount=type=secret,id=a,target=/a,required=true true",
        "FROM x AS y\nRUN --mount=from=y,target=/a --mount=type=tmpfs,target=/b true",
        'FROM x\nRUN cat <<< "text" && echo $((1 << 3))',
        "FROM x\n# the syntax of this file\nRUN echo '# syntax=a'",
    ],
)
def test_what_stays_within_is_taken(dockerfile: str) -> None:
    assert build_problem(dockerfile, {"VERSION": "1"}, {"token"}) == ""


def test_arguments_of_the_builder_itself_are_not_taken_with_secrets() -> None:
    assert "BUILDKIT_" in build_problem(MOUNT, {"buildkit_syntax": "a/b"}, {"token"})


def test_without_secrets_only_a_mount_of_one_is_wrong() -> None:
    assert build_problem("# syntax=a\nFROM x\nRUN <<E\nE", {"BUILDKIT_X": ""}, ()) == ""
    assert "has none" in build_problem(MOUNT, {}, ())


def test_the_mark_differs_with_every_part_and_tells_no_secret() -> None:
    marks = {
        secrets_mark("key", "i-1", {"a": "x", "b": "y"}),
        secrets_mark("other", "i-1", {"a": "x", "b": "y"}),
        secrets_mark("key", "i-2", {"a": "x", "b": "y"}),
        secrets_mark("key", "i-1", {"a": "x", "b": "z"}),
        secrets_mark("key", "i-1", {"a": "x", "c": "y"}),
        secrets_mark("key", "i-1", {"a": "xb", "": "y"}),
    }
    assert len(marks) == 6
    assert secrets_mark("key", "i", {"b": "1", "a": "2"}) == secrets_mark(
        "key", "i", {"a": "2", "b": "1"}
    )
    assert secrets_mark("key", "i", {}) == ""


def test_a_build_step_carries_its_secrets_and_never_shows_them(bench: Bench) -> None:
    wanted = build(dockerfile=MOUNT, build_secrets={"token": CANARY})
    plan = bench.plan(document(images=(wanted,)))
    step = plan.nodes[0].step
    assert isinstance(step, BuildImage)
    assert step.request.secrets == {"token": CANARY}
    assert step.request.secrets_mark.startswith("trailer-secrets-")
    assert CANARY not in repr(plan) + plan.render() + step.detail()


def test_the_agent_refuses_what_the_server_should_have() -> None:
    forged = build(dockerfile=f"# syntax=a\n{MOUNT}", build_secrets={"token": CANARY})
    refused = HostPolicy().refusals(document(images=(forged,)), resolve=str)
    assert ["frontend" in text for text in refused.values()] == [True]


def test_what_a_build_prints_of_its_secrets_is_masked_before_it_leaves(
    launch: Launch, fake_server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wanted = build(dockerfile=MOUNT, build_secrets={"token": CANARY})
    fake_server.desire(images=(wanted,))
    running = launch()
    ends(fake_server, "b-app", "finished")
    eventually(lambda: b"Done" in fake_server.book.logs.get("b-app", b""))
    running.stop()
    log = fake_server.book.logs["b-app"].decode()
    assert f"{MASK}\nok\n" in log
    journal = b"".join(path.read_bytes() for path in tmp_path.glob("agent.sqlite3*"))
    told = [log, caplog.text, repr(fake_server.cycles()), journal.decode(errors="replace")]
    assert [CANARY in text for text in told] == [False] * 4


KEY = "-----BEGIN KEY-----\nfirst-line-of-it\nsecond-line-of-it\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("secret", "pieces", "shown"),
    [
        (CANARY, [f"a {CANARY} b\n"], f"a {MASK} b\n"),
        (CANARY, ["a cana", "ry-build", "-11aa", " b\nrest"], f"a {MASK} b\nrest"),
        (CANARY, [f"{CANARY}{CANARY}"], MASK * 2),
        (f"{CANARY}\n", [f"[{CANARY}]\n"], f"[{MASK}]\n"),
        ("p/ss=w&rd", ["x=p%2Fss%3Dw%26rd\n"], f"x={MASK}\n"),
        ('a"b\\c', ['{"k": "a\\"b\\\\c"}\n'], f'{{"k": "{MASK}"}}\n'),
        (CANARY, ["Y2FuYXJ5LWJ1aWxkLTExYWE=\n"], f"{MASK}=\n"),
        (KEY, ["> second-line-of-it\n"], f"> {MASK}\n"),
        (KEY, [KEY], f"{MASK}"),
        ("abc", ["abcdef\n"], "abcdef\n"),
    ],
)
def test_a_secret_is_masked_however_it_comes(secret: str, pieces: list[str], shown: str) -> None:
    written: list[str] = []
    output = MaskedOutput(written.append, [secret])
    for piece in pieces:
        output.write(piece)
    output.flush()
    assert "".join(written) == shown


def test_the_longer_of_two_secrets_goes_first() -> None:
    output = MaskedOutput(lambda _: None, ["hunter", "hunter-and-more"])
    assert output.masked("hunter-and-more hunter") == f"{MASK} {MASK}"


def test_without_secrets_every_piece_is_passed_on_at_once() -> None:
    written: list[str] = []
    output = MaskedOutput(written.append, [])
    output.write("half a li")
    assert written == ["half a li"]


def test_a_line_without_an_end_is_not_held_back_for_ever() -> None:
    written: list[str] = []
    output = MaskedOutput(written.append, [CANARY])
    for _ in range(200):
        output.write("x" * 1024)
    assert sum(map(len, written)) >= 128 * 1024


def test_a_secret_across_the_cut_of_a_long_line_is_masked() -> None:
    for place in range(0, len(CANARY) * 3, 5):
        written: list[str] = []
        output = MaskedOutput(written.append, [CANARY])
        output.write("x" * (128 * 1024 - place))
        for sign in f"{CANARY}-{CANARY[:9]}{CANARY}":
            output.write(sign)
        output.write("y" * 1000)
        output.flush()
        shown = "".join(written).strip("xy")
        assert shown == f"{MASK}-{CANARY[:9]}{MASK}"


def test_a_longer_secret_that_begins_with_another_is_masked_across_the_cut() -> None:
    written: list[str] = []
    output = MaskedOutput(written.append, ["hunter", "hunter-and-more"])
    output.write("x" * (128 * 1024 + 30) + "hunter-and")
    output.write("-more" + "y" * (128 * 1024 + 30))
    output.flush()
    assert "".join(written).strip("xy") == MASK


def test_many_short_lines_of_large_secrets_cost_little() -> None:
    def key(number: int, lines: int) -> str:
        return "".join(f"{number:03x}{line:06x}\n" for line in range(lines))

    def costs(lines: int) -> tuple[int, int]:
        """Of the making, and of looking through a text of 66,000 characters."""
        secrets = [key(number, lines) for number in range(20)]
        written: list[str] = []
        outputs: list[MaskedOutput] = []
        text = "nothing of it, only a long text. " * 2000 + "\n> 013000123 <\n"
        made = lines_run(lambda: outputs.append(MaskedOutput(written.append, secrets)))
        looked = lines_run(lambda: outputs[0].write(text))
        assert written[0].endswith(f"\n> {MASK} <\n")
        return made, looked

    few, many = costs(1400), costs(2800)
    assert many[0] < 2.2 * few[0]
    assert many[1] < 1.1 * few[1]
    assert many[1] < 10 * 66_000


def test_lines_that_begin_alike_in_many_lengths_cost_little_and_leak_nothing() -> None:
    secret = "\n".join("a" * length + "b" for length in range(8, 350))
    written: list[str] = []
    output = MaskedOutput(written.append, [secret])
    text = f"{'a' * 65536}\n{'a' * 100}b and more\nshort\n"
    assert lines_run(lambda: output.write(text)) < 10 * 66_000
    assert written == [f"{MASK}\n{MASK}\nshort\n"]
