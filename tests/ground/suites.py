"""Runs every test: `python -m tests.ground.suites [name ...]`; exit status 0 means all passed."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# Measured, and too long for every run: commands of their own.
NOT_SUITES = ("ground", "bench", "deployed")

# How pytest's summary begins a line about a test that did not pass.
FAILURES = ("FAILED ", "ERROR ")


@dataclass(frozen=True)
class Suite:
    """Folders or files whose tests share a pytest process, and how it is called; or another
    program."""

    name: str
    folders: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    program: tuple[str, ...] = ("pytest", "-q", "--durations=12")

    def folders_with_tests(self) -> list[str]:
        """Return those of the folders that hold tests."""
        present = [TESTS / folder for folder in self.folders]
        return [str(path.relative_to(TESTS.parent)) for path in present if test_files(path)]


FAST = Suite(
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
        "security",
    ),
    # More workers than cores: many of these tests wait for a loop or a socket.
    ("-n", "4", "--dist", "worksteal"),
)
# As long as what the engines have left when the pages are done.
STACKS = Suite("stacks", ("e2e/test_stacks.py", "e2e/test_stacks_faults.py"))
# Each worker has an engine of its own; tests.ground.order says which files come first.
ENGINE = Suite(
    "engine",
    ("engine", "e2e"),
    (
        *("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"),
        *(f"--ignore=tests/{name}" for name in STACKS.folders),
    ),
)
# The page tests have a process of their own: Playwright and asyncio tests cannot share one.
BROWSER = Suite("browser", ("browser",))
# The second half of `make check`. It takes one core for most of a minute, and finds one free when
# the pages are done and the engines still wait for each other.
TYPES = Suite("types", program=("mypy",))

# The lanes of one phase run side by side, the suites of one lane one after the other: engine and
# pages mostly wait, for each other's profit.
PHASES = (((FAST,),), ((ENGINE,), (BROWSER, TYPES, STACKS)))
SUITES = tuple(suite for phase in PHASES for lane in phase for suite in lane)


@dataclass(frozen=True)
class Result:
    """How a suite went."""

    name: str
    passed: bool
    seconds: float
    failures: tuple[str, ...] = ()


def test_files(folder: Path) -> list[Path]:
    """Return the files with tests below a folder; a file is one itself."""
    return [folder] if folder.is_file() else sorted(folder.rglob("test_*.py"))


def stray_tests() -> list[Path]:
    """Return test files that belong to no suite and so would never run."""
    known = {folder.split("/")[0] for suite in SUITES for folder in suite.folders}
    known |= set(NOT_SUITES)
    return [path for path in test_files(TESTS) if path.relative_to(TESTS).parts[0] not in known]


def run_suite(suite: Suite) -> Result:
    """Run one suite; its name precedes every line it prints, since others may print as well."""
    folders = suite.folders_with_tests()
    print(f"{suite.name:8}| {' '.join(folders)}", flush=True)
    started = time.monotonic()
    command = [sys.executable, "-m", *suite.program, *suite.options, *folders]
    with subprocess.Popen(
        command,
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as running:
        assert running.stdout is not None
        failures = []
        for line in running.stdout:
            print(f"{suite.name:8}| {line}", end="", flush=True)
            if line.startswith(FAILURES):
                failures.append(line.rstrip())
    passed = running.returncode == 0
    return Result(suite.name, passed, time.monotonic() - started, tuple(failures))


def run_phase(lanes: list[list[Suite]]) -> list[Result]:
    """Run lanes side by side, each suite to its end even if another fails."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        results = pool.map(lambda lane: [run_suite(suite) for suite in lane], lanes)
        return [result for lane in results for result in lane]


def told(results: list[Result]) -> list[str]:
    """Say how each suite went, and last which tests failed: often only the end of a run's output
    is kept."""
    lines = [
        f"{result.name:10} {'passed' if result.passed else 'FAILED'} ({result.seconds:.1f} s)"
        for result in results
    ]
    return lines + [line[:300] for result in results for line in result.failures]


def main(names: list[str]) -> int:
    """Run the named suites, or all."""
    unknown = set(names) - {suite.name for suite in SUITES}
    if unknown:
        print(f"no such suite: {' '.join(unknown)}")
        return 2
    stray = stray_tests()
    if stray:
        print(f"these tests belong to no suite: {' '.join(map(str, stray))}")
        return 1
    results: list[Result] = []
    for phase in PHASES:
        lanes = [[suite for suite in lane if not names or suite.name in names] for lane in phase]
        results += run_phase(lanes)
    print()
    print("\n".join(told(results)))
    return 0 if results and all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
