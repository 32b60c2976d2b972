"""Runs every test: `python -m tests.ground.suites [name ...]`; exit status 0 means all passed."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
NOT_SUITES = ("ground", "bench")


@dataclass(frozen=True)
class Suite:
    """Folders whose tests share one pytest process, and how it is called."""

    name: str
    folders: tuple[str, ...]
    options: tuple[str, ...] = ()

    def folders_with_tests(self) -> list[str]:
        """Return those of the folders that hold tests."""
        present = [TESTS / folder for folder in self.folders]
        return [str(path.relative_to(TESTS.parent)) for path in present if test_files(path)]


# The page tests have a process of their own: Playwright and asyncio tests cannot share one.
SUITES = (
    Suite(
        "fast",
        (
            "deploy",
            "architecture",
            "agent",
            "hosts",
            "images",
            "workspaces",
            "trailer",
            "contract",
            "live",
        ),
        ("-n", "2", "--dist", "loadfile"),
    ),
    # Each worker has an engine of its own; most of the time is spent waiting for it.
    Suite("engine", ("engine", "e2e"), ("-n", "3", "--dist", "loadfile")),
    Suite("browser", ("browser",)),
)


def test_files(folder: Path) -> list[Path]:
    """Return the files with tests below a folder."""
    return sorted(folder.rglob("test_*.py"))


def stray_tests() -> list[Path]:
    """Return test files that belong to no suite and so would never run."""
    known = {folder for suite in SUITES for folder in suite.folders} | set(NOT_SUITES)
    return [path for path in test_files(TESTS) if path.relative_to(TESTS).parts[0] not in known]


def run_suite(suite: Suite, folders: list[str]) -> bool:
    """Run one suite and tell whether it passed."""
    print(f"\n=== {suite.name}: {' '.join(folders)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "--durations=12", *suite.options, *folders]
    return subprocess.run(command, cwd=TESTS.parent, check=False).returncode == 0


def main(names: list[str]) -> int:
    """Run the named suites, or all, to the last one even if an earlier one fails."""
    unknown = set(names) - {suite.name for suite in SUITES}
    if unknown:
        print(f"no such suite: {' '.join(unknown)}")
        return 2
    stray = stray_tests()
    if stray:
        print(f"these tests belong to no suite: {' '.join(map(str, stray))}")
        return 1
    results = []
    for suite in SUITES:
        folders = suite.folders_with_tests()
        if folders and (not names or suite.name in names):
            started = time.monotonic()
            passed = run_suite(suite, folders)
            results.append((suite.name, passed, time.monotonic() - started))
    print()
    for name, passed, seconds in results:
        print(f"{name:10} {'passed' if passed else 'FAILED'} ({seconds:.1f} s)")
    return 0 if results and all(passed for _, passed, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
