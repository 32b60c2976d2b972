"""Outcomes of tests: fixtures learn of the failure of their test; a skipped test fails the run."""

from collections.abc import Generator

import pytest

FAILED = pytest.StashKey[bool]()


def has_failed(item: pytest.Item) -> bool:
    """Tell a fixture, as it ends, whether its test failed."""
    return item.stash.get(FAILED, False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure on the test itself."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that left out a test: passing must mean that everything ran."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.exitstatus != pytest.ExitCode.OK:
        return
    if any(reporter.stats.get(outcome) for outcome in ("skipped", "xfailed", "xpassed")):
        reporter.ensure_newline()
        reporter.write_line("Tests were skipped, so this run does not count as passed.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
