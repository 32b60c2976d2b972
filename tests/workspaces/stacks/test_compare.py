"""Two versions of a file are shown as people read them."""

from __future__ import annotations

from workspaces.stacks.file.compare import diff_lines

OLD = "\n".join(f"line {number}" for number in range(1, 21))


def shown(old: str, new: str) -> list[tuple[str, str, int | None, int | None]]:
    lines = diff_lines(old, new)
    return [(line.kind, line.text, line.old_number, line.new_number) for line in lines]


def test_equal_texts_differ_in_nothing() -> None:
    assert diff_lines(OLD, OLD) == []


def test_a_change_is_shown_with_a_few_lines_around_it() -> None:
    assert shown(OLD, OLD.replace("line 10", "LINE 10")) == [
        ("same", "line 7", 7, 7),
        ("same", "line 8", 8, 8),
        ("same", "line 9", 9, 9),
        ("removed", "line 10", 10, None),
        ("added", "LINE 10", None, 10),
        ("same", "line 11", 11, 11),
        ("same", "line 12", 12, 12),
        ("same", "line 13", 13, 13),
    ]


def test_changes_far_apart_have_a_gap_between_them() -> None:
    new = OLD.replace("line 2\n", "").replace("line 19", "LINE 19")
    assert [line[0] for line in shown(OLD, new)].count("gap") == 1


def test_a_first_file_is_all_new() -> None:
    assert shown("", "a\nb\n") == [("added", "a", None, 1), ("added", "b", None, 2)]
