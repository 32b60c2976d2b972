"""Set-up: what it says when something is missing, and what its lock files hold."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ICON = re.compile(r"""(?:lucide/sprite\.svg#|\{% icon ["'])([a-z0-9-]+)""")


def set_up(purpose: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run set-up, which `make` has already run once, with another environment."""
    return subprocess.run(
        [sys.executable, "deploy/setup.py", purpose],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_engine_that_does_not_answer_is_named_in_one_sentence() -> None:
    done = set_up("run", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 1
    assert "no Docker engine answers at DOCKER_HOST=unix:///nowhere/docker.sock" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unknown_purpose_is_refused() -> None:
    done = set_up("fly")
    assert (done.returncode, done.stderr) == (1, "usage: python3 deploy/setup.py run|test\n")


def test_every_wanted_file_of_the_pages_is_in_place() -> None:
    wanted = json.loads((ROOT / "package.json").read_text())["trailer"]
    vendor = ROOT / "static" / "vendor"
    assert {path.name for path in vendor.iterdir()} == {*wanted["vendor"], "lucide"}
    sprite = (vendor / "lucide" / "sprite.svg").read_text()
    assert re.findall(r'<symbol id="([^"]+)"', sprite) == wanted["icons"]


def test_no_file_of_the_pages_refers_to_a_source_map() -> None:
    for path in (ROOT / "static" / "vendor").rglob("*.*js"):
        assert "sourceMappingURL" not in path.read_text(), path


def test_the_lock_files_name_no_registry() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    packages = [entry for name, entry in lock["packages"].items() if name]
    assert packages
    assert all("integrity" in entry and "resolved" not in entry for entry in packages)
    for name in (
        *("requirements.txt", "tests/requirements.txt"),
        *("deploy/node-requirements.txt", "deploy/semgrep/requirements.txt"),
    ):
        text = (ROOT / name).read_text()
        assert "://" not in text
        pins = re.findall(r"^\S+==\S+.*\\\n    --hash=sha256:", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[a-zA-Z0-9]", text, re.MULTILINE)) > 0


def test_every_icon_that_a_template_names_is_in_the_sprite() -> None:
    icons = set(json.loads((ROOT / "package.json").read_text())["trailer"]["icons"])
    used = {
        (icon, str(path.relative_to(ROOT)))
        for path in (ROOT / "templates").rglob("*.html")
        for icon in ICON.findall(path.read_text())
    }
    assert [(icon, path) for icon, path in sorted(used) if icon not in icons] == []
