"""The tests of the running product that a deployment is not asked to pass, each with its reason.

TRAILER_TEST_SERVER=production or containers leaves these out and says so; everything else in
tests/e2e and tests/browser runs there unchanged.
"""

import pytest

from tests.ground.ways import Standalone, chosen

NOT_DEPLOYED = {
    "tests/e2e/test_start.py::test_a_second_server_on_the_same_data_folder_refuses_to_start": (
        "Only `manage.py standalone` locks its data folder, for the sake of SQLite; the processes "
        "of a deployment share theirs."
    ),
}
# These run beside a deployment of either kind, but on something they start themselves.
ON_THEIR_OWN = {
    "tests/e2e/test_production.py": (
        "It kills PostgreSQL, Redis and the worker, and is always on processes that it may kill."
    ),
    "tests/e2e/test_torture.py": (
        "It kills and freezes server, database, agent and engine, and needs each by itself."
    ),
    "tests/e2e/test_metrics_on_postgresql.py": (
        "It runs tests of single parts once more, on PostgreSQL; no server is started."
    ),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselected, which the summary counts; a skipped test would fail the run."""
    if chosen() is Standalone:
        return
    left_out = [item for item in items if item.nodeid in NOT_DEPLOYED]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for item in terminalreporter.stats.get("deselected", ()):
        if reason := NOT_DEPLOYED.get(item.nodeid):
            terminalreporter.write_line(f"left out: {item.nodeid}: {reason}")
