"""What `python -m agent health` calls healthy, and that asking costs next to nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.health import FRESH_SECONDS, HealthFile, Note, health_path, read_note, trouble

NOW = 10_000.0


@pytest.mark.parametrize(
    ("note", "word"),
    [
        (None, "not said anything"),
        (Note(False, NOW), "not accepted"),
        (Note(True, -1.0), "not finished a cycle"),
        (Note(True, NOW - FRESH_SECONDS - 1), "not finished a cycle"),
        # A time to come is one of an earlier boot.
        (Note(True, NOW + 5), "not finished a cycle"),
    ],
)
def test_an_agent_in_trouble_says_which(note: Note | None, word: str) -> None:
    assert word in trouble(note, NOW)


def test_an_agent_that_is_signed_in_and_looked_lately_is_healthy() -> None:
    assert trouble(Note(True, NOW - FRESH_SECONDS + 1), NOW) == ""


def test_what_is_noted_is_read_again(tmp_path: Path) -> None:
    file = HealthFile(tmp_path / "health.json")
    assert read_note(tmp_path / "health.json") == Note()
    file.signed_in(True)
    file.looked()
    note = read_note(tmp_path / "health.json")
    assert note is not None
    assert trouble(note, time.monotonic()) == ""
    file.signed_in(False)
    assert "not accepted" in trouble(read_note(tmp_path / "health.json"), time.monotonic())


def test_a_folder_that_cannot_be_written_does_not_end_the_agent(tmp_path: Path) -> None:
    HealthFile(tmp_path / "absent" / "health.json").looked()
    assert read_note(tmp_path / "absent" / "health.json") is None


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"signed_in": 1, "looked_at": "soon"}'])
def test_a_file_that_makes_no_sense_is_no_health(tmp_path: Path, body: str) -> None:
    (tmp_path / "health.json").write_text(body)
    assert read_note(tmp_path / "health.json") is None


def test_the_command_answers_with_its_exit_status_and_loads_no_engine_client(
    tmp_path: Path,
) -> None:
    file = HealthFile(health_path(tmp_path))
    code = (
        "import sys, runpy; sys.argv[1:] = ['health']\n"
        "try: runpy.run_module('agent', run_name='__main__')\n"
        "except SystemExit as end: print(end.code, 'docker' in sys.modules)"
    )

    def ask() -> str:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TRAILER_AGENT_STATE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert ask() == "The server has not accepted this agent.\n1 False\n"
    file.signed_in(True)
    file.looked()
    assert ask() == "healthy\n0 False\n"
