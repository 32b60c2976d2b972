"""What every set-up step shares: where things are, how a command is run and how a step fails."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / "trailer-setup"
SETTINGS = ("TRAILER_DATA_DIR", "TRAILER_EMBEDDED_AGENT", "DOCKER_HOST")


class SetupError(Exception):
    """One sentence for the person at the keyboard: what is wrong and what to do."""


def run_command(
    command: Sequence[str | Path], failure: str, env: Mapping[str, str] | None = None
) -> str:
    """Run a command in the clone; when it fails, raise `failure` with the end of its output."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise SetupError(f"{failure} ({error})") from None
    if done.returncode != 0:
        tail = "\n".join(f"    {line}" for line in done.stdout.strip().splitlines()[-12:])
        raise SetupError(f"{failure} The last lines it printed:\n{tail}")
    return done.stdout


def digest(*paths: Path) -> str:
    """Return one hash over the contents of the files, to notice when they change."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
        total.update(b"\0")
    return total.hexdigest()


def is_stamped(name: str, value: str) -> bool:
    """Tell whether the step `name` was already done for exactly this value."""
    stamp = STAMPS / name
    return stamp.is_file() and stamp.read_text() == value


def write_stamp(name: str, value: str) -> None:
    """Remember that the step `name` is done for this value; the stamps vanish with the .venv."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / name).write_text(value)


def load_dotenv() -> None:
    """Take the settings that set-up needs from .env, where the environment does not give them."""
    path = ROOT / ".env"
    if not path.is_file():
        return
    for line in path.read_text().splitlines():
        name, separator, value = line.strip().removeprefix("export ").partition("=")
        if separator and name in SETTINGS:
            os.environ.setdefault(name, value.strip().strip("'\""))


def data_dir() -> Path:
    """Return the data folder; a relative one is relative to the clone, as it is for the server."""
    return ROOT / os.environ.get("TRAILER_DATA_DIR", "data")
