"""Which tests of the running product do not run on a deployment is written down, and true."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest

from tests.ground import exempt
from tests.ground.exempt import NOT_DEPLOYED, ON_THEIR_OWN

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("tests/e2e", "tests/browser")


def named_in(path: Path) -> list[str]:
    nodes = ast.parse(path.read_text()).body
    return [
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def test_what_is_left_out_exists_and_has_a_reason_in_the_manual() -> None:
    manual = (ROOT / "docs" / "development.md").read_text()
    for node, reason in {**NOT_DEPLOYED, **ON_THEIR_OWN}.items():
        file, _, name = node.partition("::")
        assert file.startswith(SUITES)
        assert not name or name in named_in(ROOT / file), node
        assert re.fullmatch(r"[A-Z].{30,}\.", reason), node
        assert (name or Path(file).name) in manual, f"docs/development.md does not name {node}"


def test_nothing_else_chooses_where_it_runs() -> None:
    """A test that asked for the way itself could leave itself out unseen."""
    asked = re.compile(r"TRAILER_TEST_SERVER|ground\.ways|ProductionTrailer|\.skip")
    found = {
        str(path.relative_to(ROOT))
        for suite in SUITES
        for path in (ROOT / suite).rglob("*.py")
        if asked.search(path.read_text())
    }
    assert found <= set(ON_THEIR_OWN)


@pytest.mark.parametrize("way", ["standalone", "production", "containers"])
def test_only_a_deployment_leaves_tests_out_and_counts_them(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("TRAILER_TEST_SERVER", way)
    listed, other = (SimpleNamespace(nodeid=name) for name in (*NOT_DEPLOYED, "tests/e2e/x.py::y"))
    config, items = Mock(), [listed, other]
    exempt.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
    told = config.hook.pytest_deselected.call_args_list
    if way == "standalone":
        assert (items, told) == ([listed, other], [])
    else:
        assert (items, told) == ([other], [call(items=[listed])])
