"""Where the labels of a build are written into its Dockerfile, and where they are not."""

from __future__ import annotations

import pytest

from agent.runtime.dockerfile_labels import labelled, told_as_written

LABELS = {"trailer.managed": "true", "trailer.image": "1f-2"}
LINE = "LABEL trailer.image=1f-2 trailer.managed=true\n"


@pytest.mark.parametrize(
    ("before", "after", "target"),
    [
        ("FROM busybox\n", "RUN true\n", ""),
        ("from busybox\n", "", ""),
        ("# a comment\nARG V=1\n  FROM busybox:$V\n", "\nRUN true\n", ""),
        ("FROM busybox\\\n  AS one\n", "RUN true\n", ""),
        ("FROM \\\n# why\n\nbusybox\n", "RUN true\n", ""),
        ("FROM a AS one\nRUN true\nFROM b\n", "COPY --from=one /a /b\n", ""),
        ("FROM a AS One\n", "RUN true\nFROM b\n", "one"),
        ("FROM a\nRUN echo \\\n  FROM x\nFROM b\n", "RUN true\n", ""),
        ("FROM a\nFROM b\n", "FROM c\n", "1"),
        ("# escape=`\nFROM a `\n AS x\n", "RUN dir c:\\\nRUN true\n", ""),
        ("# syntax=x\n# escape=`\nFROM a\\\n", "RUN true\n", ""),
        ("FROM a\r\n", "RUN true\r\n", ""),
        ("FROM a\n", 'COPY --from=trailer.invalid/sources/m:latest ["/source0/*", "/x"]\n', ""),
    ],
)
def test_labels_stand_right_behind_the_from_of_the_stage_that_is_built(
    before: str, after: str, target: str
) -> None:
    assert labelled(before + after, LABELS, target=target) == before + LINE + after


def test_a_last_line_that_does_not_end_is_ended_first() -> None:
    assert labelled("FROM a", LABELS, target="") == f"FROM a\n{LINE}"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("", ""),
        ("RUN true\n", ""),
        ("FROM a\n", "nowhere"),
        ("FROM a\nRUN <<END\nFROM b\nEND\n", ""),
        ("FROM a\nLABEL trailer.image=another\n", ""),
    ],
)
def test_what_is_not_certain_is_left_to_the_engine(text: str, target: str) -> None:
    assert labelled(text, LABELS, target=target) is None


def test_values_that_would_need_quotes_are_left_to_the_engine() -> None:
    assert labelled("FROM a\n", {"a": 'b" c'}, target="") is None
    assert labelled("FROM a\n", {"a": "$HOME"}, target="") is None


def test_without_labels_nothing_is_written() -> None:
    assert labelled("FROM a\n", {}, target="") is None


@pytest.mark.parametrize(("said", "told"), [(1, 1), (3, 2), (7, 6)])
def test_a_line_number_is_that_of_the_text_without_labels(said: int, told: int) -> None:
    dockerfile = "FROM a\nRUN true\nRUM true\n"
    text = labelled(dockerfile, LABELS, target="") or ""
    message = f"dockerfile parse error line {said}: unknown instruction: RUM"
    expected = f"dockerfile parse error line {told}: unknown instruction: RUM"
    assert told_as_written(message, text=text, dockerfile=dockerfile) == expected
    assert told_as_written(message, text=dockerfile, dockerfile=dockerfile) == message
