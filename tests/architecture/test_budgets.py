"""The size budget of files and functions, so that no file grows into a dumping ground."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("agent", "trailer", "hosts", "images", "workspaces", "deploy", "tests")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
# Lines of a file, and of a function.
PRODUCT = (500, 60)
TESTS = (400, 50)
BANNED_NAMES = {"utils.py", "helpers.py", "misc.py", "common.py"}


def _too_large(path: Path) -> list[str]:
    text = path.read_text()
    name = path.relative_to(ROOT)
    most_of_file, most_of_function = TESTS if name.parts[0] == "tests" else PRODUCT
    found = []
    if text.count("\n") > most_of_file:
        found.append(f"{name}: {text.count(chr(10))} lines")
    found.extend(
        f"{name}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > most_of_function
    )
    return found


def test_no_file_and_no_function_is_over_its_budget() -> None:
    assert [problem for path in FILES for problem in _too_large(path)] == []


def test_no_file_has_a_dumping_ground_name() -> None:
    assert [str(path) for path in FILES if path.name in BANNED_NAMES] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_was_looked_at(folder: str) -> None:
    assert any(path.is_relative_to(ROOT / folder) for path in FILES)
