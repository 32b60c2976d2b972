"""Docker Compose 2: this machine's own, or that of Debian 13, kept in the temporary folder."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.ground.process import run

_PLUGINS = ("/usr/local/lib", "/usr/local/libexec", "/usr/lib", "/usr/libexec")
_KEPT = Path(tempfile.gettempdir()) / "trailer-test-docker-compose"
_NEWER_DEBIAN = "trixie"


@cache
def compose() -> Path:
    """The program. Debian 12 has only version 1, which does not understand our file."""
    places = [Path(folder) / "docker/cli-plugins/docker-compose" for folder in _PLUGINS]
    if found := shutil.which("docker-compose"):
        places.append(Path(found))
    for place in [*places, _KEPT]:
        if os.access(place, os.X_OK) and _is_version_2(place):
            return place
    return _fetched()


def _is_version_2(program: Path) -> bool:
    said = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    found = re.search(r"version v?(\d+)\.", said.stdout)
    return found is not None and int(found[1]) >= 2


def _fetched() -> Path:
    """By apt, which checks the signature; nothing is installed. Renamed at the end: two test runs
    at once never start half a program."""
    with tempfile.TemporaryDirectory(dir=_KEPT.parent) as name:
        folder = Path(name)
        (folder / "sources.list").write_text(f"deb {_mirror()} {_NEWER_DEBIAN} main\n")
        (folder / "lists/partial").mkdir(parents=True)
        (folder / "cache/archives/partial").mkdir(parents=True)
        settings = {
            "Dir::Etc::SourceList": folder / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "root",
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        run("apt-get", "-q", *options, "update")
        run("env", "-C", folder, "apt-get", "-q", *options, "download", "docker-compose")
        (package,) = folder.glob("docker-compose_*.deb")
        run("dpkg", "-x", package, folder / "unpacked")
        (folder / "unpacked/usr/libexec/docker/cli-plugins/docker-compose").rename(_KEPT)
    return _KEPT


def _mirror() -> str:
    """Where this machine has its own release of Debian from."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    known = run("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)").splitlines()
    found = {line.removeprefix(f"{release} ") for line in known if line.startswith(f"{release} ")}
    assert found, f"apt knows no source of Debian's release {release}"
    return min(found)
