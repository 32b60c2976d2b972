"""The agent's image that `make run` hands out, made in the background when the agent has changed.

On the embedded engine from TRAILER_AGENT_BASE as deploy/agent.Dockerfile says; where that is not
possible, because no registry or package index is in reach or no engine answers, of the Python that
the server runs on. Only when neither works there is none, and a note says why.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings

from agent.protocol import PROTOCOL_VERSION
from hosts.agent_images.store import (
    agent_archives,
    archive_adopt,
    data_folder,
    making,
    problem_note,
)
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hosts.agent_images.store import AgentArchive

logger = logging.getLogger(__name__)

_PATIENCE: Final = 900.0
_STOP_SECONDS: Final = 5
_LONGEST: Final = 500


class _Failed(Exception):
    """A way to make the image did not work; why, in a sentence."""


class AgentImageMaker:
    """`start` returns at once; `stop` ends what is under way, and the next start begins again."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="agent-image", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        begun = time.monotonic()
        try:
            made = self.make()
        except Exception:
            logger.exception("the agent's image could not be made")
            return
        if made is not None:
            seconds = round(time.monotonic() - begun, 1)
            logger.info("agent image made", extra={"digest": made.digest, "seconds": seconds})

    def make(self) -> AgentArchive | None:
        """None when there is one already, when none is wanted, and when it could not be made."""
        base = settings.TRAILER_AGENT_BASE
        if not base or settings.TRAILER_AGENT_IMAGE:
            return None
        with making():
            made_from = fingerprint(base)
            if not is_due(made_from):
                return None
            problems = []
            for way in (self._on_the_engine, self._of_this_python):
                try:
                    archive = way(base, made_from)
                except (_Failed, Invalid, OSError) as problem:
                    if self._stopping.is_set():
                        return None
                    logger.info("one way to the agent's image failed", extra={"why": str(problem)})
                    problems.append(str(problem))
                else:
                    problem_note("")
                    return archive
            problem_note(" ".join(problems))
            return None

    def _on_the_engine(self, base: str, made_from: str) -> AgentArchive:
        module = "agent.runtime.docker_agent_image"
        with tempfile.TemporaryFile() as file:
            words = ["-m", module, base, settings.TRAILER_VERSION, str(settings.BASE_DIR)]
            self._python(words, output=file.fileno())
            file.seek(0)
            return archive_adopt(file, made_from=made_from)

    def _of_this_python(self, base: str, made_from: str) -> AgentArchive:
        # What a killed server leaves of it goes with the next archive.
        with tempfile.TemporaryDirectory(dir=data_folder(), prefix=".new-") as folder:
            self._python(["deploy/agent_python.py", folder])
            [path] = Path(folder).glob("*.tar.gz")
            with path.open("rb") as file:
                return archive_adopt(file, made_from=made_from)

    def _python(self, words: Sequence[str], output: int = subprocess.DEVNULL) -> None:
        """In a process of its own, which gives way to requests."""
        if self._stopping.is_set():
            raise _Failed("The server is stopping.")
        own = {"VERSION": settings.TRAILER_VERSION, "PROTOCOL": str(PROTOCOL_VERSION)}
        with tempfile.TemporaryFile() as errors:
            self._process = process = subprocess.Popen(
                [sys.executable, *words],
                cwd=settings.BASE_DIR,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)
            try:
                code = process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise _Failed(f"That took more than {_PATIENCE:g} seconds.") from None
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
        if code:
            last = said.splitlines()[-1] if said else f"It ended with exit code {code}."
            raise _Failed(last[:_LONGEST])


def is_due(made_from: str) -> bool:
    """False when what is there is made of the same, or was put in by an operator."""
    mine = [each for each in agent_archives() if each.is_for_this_machine]
    return not any(each.made_from in ("", made_from) for each in mine)


def fingerprint(base: str) -> str:
    """Of everything that the image is made from."""
    root: Path = settings.BASE_DIR
    names = ("agent.Dockerfile", "agent-requirements.txt", "agent_archive.py", "agent_python.py")
    paths = [root / "deploy" / name for name in names]
    paths += sorted((root / "agent").rglob("*.py"))
    found = hashlib.sha256(f"{base} {sys.version} {platform.machine()}".encode())
    for path in paths:
        body = path.read_bytes()
        found.update(f"\0{path.relative_to(root)} {len(body)}\0".encode())
        found.update(body)
    return found.hexdigest()
