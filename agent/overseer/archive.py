"""Loads the agent's image from the server: list → download → compare digest and names → load.

What is downloaded stands in a nameless file of the state folder, so nothing stays after a crash.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from typing import IO, TYPE_CHECKING, Final, Protocol

from agent.errors import NotFound, ServerError, ServerUnavailable, StepFailed
from agent.overseer.source import archive_in
from agent.protocol.saved_image import NoSavedImage, names_in, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent.overseer.port import AgentEngine
    from agent.protocol.session import AgentImage, AgentImages

log = logging.getLogger(__name__)
# Downloads that break off go on from where they were.
_TRIES: Final = 5


class ArchiveServer(Protocol):
    def agent_images(self) -> AgentImages:
        """Nothing from a server that is too old to hand out any."""
        ...

    def agent_archive(self, digest: str, *, start: int) -> tuple[int, Iterator[bytes]]:
        """The bytes from `start` on, or all: the first value says where they begin."""
        ...


def load_from_server(
    server: ArchiveServer, engine: AgentEngine, *, image: str, state_dir: Path
) -> str:
    """Make the engine know the image as the server has it today. Returns why it could not; then
    the engine is as it was. Raises EngineError when the engine does not answer or does not take
    the archive."""
    architecture = engine.architecture()
    try:
        wanted = archive_in(server.agent_images(), image, architecture)
        if wanted is None:
            return f"The server hands out no archive of {image} for {architecture}."
        if _is_here(engine, wanted):
            return ""
        with tempfile.TemporaryFile(dir=state_dir) as file:
            _download(server, wanted, file)
            _check(wanted, file)
            log.info("loading %s from the server", image)
            file.seek(0)
            engine.load(file)
    except (ServerError, StepFailed) as problem:
        return str(problem)
    except OSError as problem:
        return f"The archive of {image} could not be stored: {problem.strerror}."
    return ""


def _is_here(engine: AgentEngine, wanted: AgentImage) -> bool:
    """An id that is made of the configuration stands for the whole image: layers are in it by
    their digests. An engine with other ids just loads once more."""
    try:
        return bool(wanted.config) and engine.image_id(wanted.image) == f"sha256:{wanted.config}"
    except NotFound:
        return False


def _download(server: ArchiveServer, wanted: AgentImage, file: IO[bytes]) -> None:
    for left in reversed(range(_TRIES)):
        try:
            start, pieces = server.agent_archive(wanted.digest, start=file.tell())
            file.seek(start)
            file.truncate()
            for piece in pieces:
                file.write(piece)
                if wanted.size and file.tell() > wanted.size:
                    raise StepFailed(
                        f"The server's archive of {wanted.image} is longer than it says."
                    )
        except ServerUnavailable:
            if not left:
                raise
        else:
            return


def _check(wanted: AgentImage, file: IO[bytes]) -> None:
    file.seek(0)
    # The file is buffered: its digest is read through Python, not by its descriptor.
    found = hashlib.sha256()
    while piece := file.read(1 << 20):
        found.update(piece)
    if found.hexdigest() != wanted.digest:
        raise StepFailed(
            f"What the server sent as {wanted.image} has another digest than it names. "
            "It was not loaded."
        )
    file.seek(0)
    try:
        names = names_in(texts_in(file))
    except NoSavedImage as problem:
        raise StepFailed(
            f"The server's archive of {wanted.image} cannot be loaded. {problem}"
        ) from None
    if names != {wanted.image}:
        listed = ", ".join(sorted(names)[:5]) or "nothing"
        raise StepFailed(
            f"The server's archive of {wanted.image} names {listed}. It was not loaded, because "
            "each name in it would mean another image on this host."
        )
