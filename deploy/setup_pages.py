"""The pages' side of set-up: npm packages by the lock file, and their files in static/vendor."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from setup_python import install_requirements
from setup_report import (
    ROOT,
    VENV,
    SetupError,
    digest,
    is_stamped,
    run_command,
    write_stamp,
)
from setup_system import apt_install, is_debian, is_root

PACKAGE = ROOT / "package.json"
LOCK = ROOT / "package-lock.json"
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "static" / "vendor"
# Source maps are not shipped, and the static files storage refuses references to absent files.
SOURCE_MAP = re.compile(
    r"^(//# sourceMappingURL=.*|/\*# sourceMappingURL=.*\*/)\s*$", re.MULTILINE
)
SVG_BODY = re.compile(r"<svg\b[^>]*>(.*)</svg>", re.DOTALL)


def install_page_packages() -> None:
    """Bring static/vendor up to date with package.json and its lock file."""
    wanted = digest(PACKAGE, LOCK, Path(__file__))
    if is_stamped("pages", wanted) and VENDOR.is_dir():
        return
    settings = json.loads(PACKAGE.read_text())["trailer"]
    run_command(
        [_find_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        "npm could not install the packages of package-lock.json.",
        # npm of the virtual environment looks for its node on the path.
        {"PATH": f"{os.environ.get('PATH', '')}:{VENV / 'bin'}"},
    )
    # Built aside and then swapped in, so that a failure half-way leaves no half a folder.
    fresh = VENDOR.with_name("vendor.new")
    shutil.rmtree(fresh, ignore_errors=True)
    for name, patterns in settings["vendor"].items():
        for pattern in patterns:
            _copy_matching(pattern, fresh / name)
    _copy_icons(settings["icons"], fresh / "lucide")
    shutil.rmtree(VENDOR, ignore_errors=True)
    fresh.rename(VENDOR)
    write_stamp("pages", wanted)


def _find_npm() -> str:
    """Return npm: the machine's, or one from PyPI inside .venv, or one from apt."""
    found = shutil.which("npm")
    if found:
        return found
    inside = VENV / "bin" / "npm"
    if not inside.exists():
        try:
            install_requirements(ROOT / "deploy" / "node-requirements.txt")
        except SetupError:
            if not (is_root() and is_debian()):
                raise SetupError("npm is missing; install Node.js with npm.") from None
            apt_install(["npm"])
            return "npm"
    return str(inside)


def _copy_matching(pattern: str, target: Path) -> None:
    """Copy the files of one pattern; the CSS refers to a folder `files`, so it is kept."""
    sources = sorted(MODULES.glob(pattern))
    if not sources:
        raise SetupError(f"package.json wants {pattern}, but the packages hold no such file.")
    for source in sources:
        folder = target / "files" if source.parent.name == "files" else target
        folder.mkdir(parents=True, exist_ok=True)
        if source.suffix in (".js", ".mjs", ".css"):
            (folder / source.name).write_text(SOURCE_MAP.sub("", source.read_text()))
        else:
            shutil.copyfile(source, folder / source.name)


def _copy_icons(names: list[str], target: Path) -> None:
    """Copy the named icons, each as a file and all as symbols of one sprite."""
    target.mkdir(parents=True, exist_ok=True)
    symbols = []
    for name in names:
        source = MODULES / "lucide-static" / "icons" / f"{name}.svg"
        if not source.is_file():
            raise SetupError(f"package.json names the icon {name}, which lucide does not have.")
        svg = source.read_text()
        body = SVG_BODY.search(svg)
        if body is None:
            raise SetupError(f"the icon {name} of lucide is not an SVG file as expected.")
        (target / source.name).write_text(svg)
        inner = " ".join(body.group(1).split())
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{inner}</symbol>')
    sprite = "\n".join(symbols)
    (target / "sprite.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg">\n{sprite}\n</svg>\n'
    )
