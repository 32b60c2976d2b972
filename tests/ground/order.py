"""Which files of tests come first: the longest. One that began last would keep one core busy while
the other has nothing left to do."""

import pytest

LONGEST = (
    "tests/e2e/test_torture.py",
    "tests/e2e/test_agent_container.py",
    "tests/engine/test_kill_points.py",
    "tests/engine/test_rows_swap.py",
    "tests/engine/test_database_replaces.py",
    "tests/e2e/test_standalone.py",
    "tests/e2e/test_production.py",
    "tests/engine/test_agent_snapshots_killed.py",
    "tests/engine/test_drift.py",
    "tests/e2e/test_start.py",
    "tests/engine/test_overseer_killed.py",
    "tests/engine/test_cleanup.py",
    "tests/e2e/test_terminals.py",
    "tests/e2e/test_router.py",
    "tests/engine/test_agent_outages.py",
    "tests/e2e/test_images.py",
    "tests/engine/test_agent_reconcile.py",
    "tests/e2e/test_image_faults.py",
    "tests/trailer/test_backup.py",
    "tests/security/test_schemathesis.py",
    "tests/trailer/test_canaries.py",
    "tests/workspaces/test_plan_agrees.py",
    "tests/workspaces/test_api_bad_input.py",
    "tests/architecture/test_access.py",
    "tests/security/test_fuzz.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The rest stays in its order."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    place = item.nodeid.partition("::")[0]
    return LONGEST.index(place) if place in LONGEST else len(LONGEST)
