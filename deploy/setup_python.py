"""The Python side of set-up: version, virtual environment, and packages pinned with hashes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setup_report import (
    ROOT,
    STAMPS,
    VENV,
    SetupError,
    digest,
    is_stamped,
    run_command,
    write_stamp,
)
from setup_system import apt_install, is_debian, is_root

OLDEST = (3, 11)
REQUIREMENTS = {
    "run": ROOT / "requirements.txt",
    "test": ROOT / "tests" / "requirements.txt",
}


def check_python_version() -> None:
    """Refuse a Python that Trailer's code does not run on."""
    if sys.version_info < OLDEST:
        raise SetupError(
            f"Trailer needs Python {OLDEST[0]}.{OLDEST[1]} or newer, but {sys.executable} is "
            f"{sys.version.split()[0]}; call make with PYTHON=/path/to/a/newer/python3."
        )


def create_virtualenv() -> None:
    """Make .venv, or make it anew when its Python is gone or another version than ours."""
    if virtualenv_works(VENV):
        return
    try:
        make_virtualenv(VENV)
    except SetupError:
        if not (is_root() and is_debian()):
            raise
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        apt_install(
            ["python3-venv" if sys.executable == "/usr/bin/python3" else f"python{version}-venv"]
        )
        make_virtualenv(VENV)


def virtualenv_works(folder: Path) -> bool:
    """Tell whether the environment is there, has our Python and stands where it was made."""
    probe = "import sys, pip; print(*sys.version_info[:3], sys.prefix)"
    python = folder / "bin" / "python"
    try:
        done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    except OSError:
        return False
    ours = " ".join(str(part) for part in sys.version_info[:3])
    # The prefix differs when the clone was moved, which breaks every script in .venv/bin.
    return done.returncode == 0 and done.stdout.strip() == f"{ours} {folder}"


def make_virtualenv(folder: Path) -> None:
    """Make it anew, whatever is there."""
    shutil.rmtree(folder, ignore_errors=True)
    run_command(
        [sys.executable, "-m", "venv", folder],
        f"{sys.executable} cannot make a virtual environment; install its venv module "
        "(on Debian and Ubuntu the package python3-venv).",
    )


def install_python_packages(purpose: str) -> None:
    """Install the pinned requirements of `purpose`; those of the tests hold those of the run."""
    wanted = digest(REQUIREMENTS[purpose])
    if is_stamped(f"python-{purpose}", wanted):
        return
    for stamp in STAMPS.glob("python-*"):
        stamp.unlink()
    install_requirements(REQUIREMENTS[purpose])
    write_stamp(f"python-{purpose}", wanted)
    if purpose == "test":
        write_stamp("python-run", digest(REQUIREMENTS["run"]))


def install_requirements(requirements: Path, folder: Path = VENV) -> None:
    """Install a requirements file with hashes: with uv in seconds, else with pip in a minute."""
    python = folder / "bin" / "python"
    if _have_uv() and _uv_installs(requirements, python):
        return
    _pip_install(requirements, python)


def _uv_installs(requirements: Path, python: Path) -> bool:
    """Try uv; whatever it stumbles over, pip is the second opinion and gives the message."""
    uv: list[str | Path] = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", python]
    env = {"UV_SYSTEM_CERTS": "1", "UV_NO_CONFIG": "1"}
    try:
        run_command([*uv, "--require-hashes", "-r", requirements], "uv failed.", env)
    except SetupError:
        print("uv failed, trying pip ... ", end="", flush=True)
        return False
    return True


def _have_uv() -> bool:
    """Bootstrap the pinned uv into .venv; pip alone can do all the rest should this fail."""
    if (VENV / "bin" / "uv").exists():
        return True
    pinned = re.search(
        r"^uv==.*?(?=^\S)", REQUIREMENTS["test"].read_text() + "#", re.MULTILINE | re.DOTALL
    )
    if pinned is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.txt"
        only_uv.write_text(pinned.group())
        try:
            _pip_install(only_uv, VENV / "bin" / "python")
        except SetupError:
            return False
    return True


def _pip_install(requirements: Path, python: Path) -> None:
    pip: list[str | Path] = [
        *(python, "-m", "pip", "install"),
        *("--quiet", "--disable-pip-version-check"),
    ]
    run_command(
        [*pip, "--require-hashes", "-r", requirements],
        f"pip could not install the packages of {requirements.name}.",
    )
