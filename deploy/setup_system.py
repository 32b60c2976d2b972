"""System packages: find what is missing and, where root on Debian or Ubuntu, install it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from setup_report import SetupError, run_command

if TYPE_CHECKING:
    from collections.abc import Iterable

# Debian package -> a command or file that shows that it, or an equal, is there.
FOR_THE_ENGINE = {
    "docker.io": "dockerd",
    "iptables": "iptables",
}
# What stacks are read with; without them everything else works.
FOR_STACKS = {
    "git": "git",
    "openssh-client": "ssh",
}
FOR_TESTS = {
    **FOR_THE_ENGINE,
    **FOR_STACKS,
    "apache2-utils": "htpasswd",
    "busybox-static": "/bin/busybox",
    "chromium-headless-shell": "/usr/bin/chromium*",
    "docker-registry": "docker-registry",
    "fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "gcc": "gcc",
    "iproute2": "ip",
    "libc6-dev": "/usr/include/stdio.h",
    "postgresql": "/usr/lib/postgresql/*/bin/initdb",
    "procps": "ps",
    "redis-server": "redis-server",
}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def is_root() -> bool:
    """Tell whether this process may install packages and start an engine."""
    return os.geteuid() == 0


def is_debian() -> bool:
    """Tell whether packages come from apt here."""
    return shutil.which("apt-get") is not None and Path("/etc/debian_version").exists()


def find_command(name: str) -> str | None:
    """Find a command also where an ordinary user's PATH does not look (the sbin folders)."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def missing_packages(wanted: dict[str, str]) -> list[str]:
    """Return the packages of which the sign is not on this machine."""

    def is_there(sign: str) -> bool:
        if sign.startswith("/"):
            return any(Path("/").glob(sign[1:]))
        return find_command(sign) is not None

    return [package for package, sign in wanted.items() if not is_there(sign)]


def apt_install(packages: Iterable[str]) -> None:
    """Install packages with apt-get, waiting for another apt to finish first."""
    names = " ".join(packages)
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=400"]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    run_command([*apt, "update"], "apt-get could not read its package lists.", env)
    run_command(
        [*apt, "install", "--no-install-recommends", *names.split()],
        f"apt-get could not install {names}.",
        env,
    )


def install_system_packages(purpose: str) -> None:
    """Install what `purpose` needs and is missing, or say in one sentence what to install.

    For `run` an engine that answers is enough; its step installs one where none does. Stacks say
    themselves when git is not there.
    """
    if purpose == "run":
        absent = missing_packages(FOR_STACKS)
        if absent and is_root() and is_debian():
            apt_install(absent)
        return
    missing = missing_packages(FOR_TESTS)
    if missing and is_root() and is_debian():
        apt_install(missing)
    elif missing:
        raise SetupError(
            f"the tests need these Debian packages or their equals: {' '.join(missing)}; "
            "install them, or run this as root on Debian or Ubuntu to have it done."
        )
    if not is_root():
        raise SetupError("the tests start Docker engines of their own, which only root may do.")
