"""The pages' scripts are bundled again after an edit, whatever was thrown away meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Puts its version of esbuild in place, which copies nothing and only makes the folder.
NPM = """#!/bin/sh
mkdir -p node_modules/@esbuild/here/bin
printf '#!/bin/sh\\nmkdir static/bundle.new\\n' > node_modules/@esbuild/here/bin/esbuild
chmod +x node_modules/@esbuild/here/bin/esbuild
echo ci >> asked
"""


def make_clone(folder: Path) -> Path:
    shutil.copytree(ROOT / "deploy", folder / "deploy", ignore=shutil.ignore_patterns("semgrep"))
    for name in ("js", "css"):
        (folder / "static" / name).mkdir(parents=True)
    wanted: dict[str, Any] = {"trailer": {"vendor": {}, "icons": []}}
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text(json.dumps(wanted))
    npm = folder / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    return folder


def set_up(clone: Path) -> None:
    """Both steps of the pages, as `make run` takes them."""
    code = (
        "import setup_bundle as b, setup_pages as p; p.install_page_packages(); b.bundle_pages()"
    )
    path = f"{clone / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=clone,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(clone / "deploy")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_packages_that_were_thrown_away_are_fetched_again_when_they_are_needed(
    tmp_path: Path,
) -> None:
    clone = make_clone(tmp_path / "clone")
    set_up(clone)
    shutil.rmtree(clone / "node_modules")
    # Nothing to bundle: nothing is fetched.
    set_up(clone)
    assert (clone / "asked").read_text().splitlines() == ["ci"]
    (clone / "static" / "js" / "app.js").write_text("// edited")
    set_up(clone)
    assert (clone / "asked").read_text().splitlines() == ["ci", "ci"]
    assert (clone / "static" / "bundle").is_dir()
