"""Archives of the agent's image in folders: one per architecture, found by its digest.

`<architecture>.json` says which `<sha256>.tar.gz` counts. The file is there before it is named and
goes after it is not named any more, so a reader finds the old one or the new one and no part of
either; a download under way keeps the file that it has open. Two folders are looked at: the data
folder, where `make run` and `manage.py agent_image` put archives, and what came with the server.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import platform
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec
from django.conf import settings

from hosts.agent_images.contents import contents_of
from trailer.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 20
_NOTE: Final = "problem.txt"
_MAKING: Final = "making.lock"
_ENGINES_WORDS: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    image: str
    version: str
    architecture: str
    digest: str
    config: str = ""
    # What it was built from, where it was built here; see trailer/standalone/agent_image.py.
    made_from: str = ""


@dataclass(frozen=True)
class AgentArchive:
    """`digest`: the SHA-256 of the file, in hexadecimal; `config`: that of the configuration in
    it, empty when nobody wrote it down."""

    image: str
    version: str
    architecture: str
    digest: str
    size: int
    path: Path
    config: str = ""
    made_from: str = ""

    @property
    def is_for_this_machine(self) -> bool:
        machine = platform.machine()
        return self.architecture == _ENGINES_WORDS.get(machine, machine)


def data_folder() -> Path:
    folder: Path = settings.TRAILER_DATA_DIR
    return folder / "agent-images"


def shipped_folder() -> Path:
    """Part of the server's own image; see deploy/server.Dockerfile."""
    folder: Path = settings.BASE_DIR
    return folder / "agent-images"


def agent_archives() -> list[AgentArchive]:
    """Those of this server's version, one per architecture; what was put in by hand goes first."""
    found: dict[str, AgentArchive] = {}
    for folder in (shipped_folder(), data_folder()):
        for archive in _archives_in(folder):
            if archive.version == settings.TRAILER_VERSION:
                found[archive.architecture] = archive
    return [found[name] for name in sorted(found)]


def agent_archive(digest: str) -> AgentArchive:
    found = next((each for each in agent_archives() if each.digest == digest), None)
    if found is None:
        raise NotFound(
            "This server hands out no agent image with this digest any more. "
            "Get a new line on the host's page."
        )
    return found


def archive_adopt(source: IO[bytes], *, made_from: str = "") -> AgentArchive:
    """Check what `docker save` wrote and put it in the place of the one for its architecture."""
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as made:
        path = Path(made) / "archive"
        digest = _write_compressed(source, path)
        contents = contents_of(path, version=settings.TRAILER_VERSION)
        entry = _Entry(
            image=contents.image,
            version=contents.version,
            architecture=contents.architecture,
            digest=digest,
            config=contents.config,
            made_from=made_from,
        )
        path.chmod(0o644)
        path.replace(_file(folder, entry))
        named = Path(made) / "entry"
        named.write_bytes(msgspec.json.encode(entry))
        named.replace(folder / f"{entry.architecture}.json")
        _remove_unnamed(folder, keep=Path(made))
    return _archive(folder, entry)


def problem_note(sentence: str) -> None:
    """Why there is no archive of this machine's engine; empty: nothing is the matter."""
    path = data_folder() / _NOTE
    if not sentence:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(sentence)
    new.replace(path)


def noted_problem() -> str:
    try:
        return (data_folder() / _NOTE).read_text().strip()
    except OSError:
        return ""


@contextmanager
def making() -> Iterator[None]:
    """While one is being made here; others wait. The lock ends with its process in any case."""
    data_folder().mkdir(parents=True, exist_ok=True)
    descriptor = os.open(data_folder() / _MAKING, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_being_made() -> bool:
    try:
        descriptor = os.open(data_folder() / _MAKING, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _archives_in(folder: Path) -> Iterator[AgentArchive]:
    for path in sorted(folder.glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=_Entry)
            yield _archive(folder, entry)
        except (OSError, msgspec.MsgspecError):
            # Replaced at this moment, or no file of ours.
            continue


def _archive(folder: Path, entry: _Entry) -> AgentArchive:
    path = _file(folder, entry)
    return AgentArchive(
        image=entry.image,
        version=entry.version,
        architecture=entry.architecture,
        digest=entry.digest,
        size=path.stat().st_size,
        path=path,
        config=entry.config,
        made_from=entry.made_from,
    )


def _file(folder: Path, entry: _Entry) -> Path:
    return folder / f"{entry.digest}.tar.gz"


def _write_compressed(source: IO[bytes], path: Path) -> str:
    """The digest of what was written; an archive that is compressed already stays as it is."""
    head = source.read(len(_GZIP))
    with path.open("w+b") as file:
        if head == _GZIP:
            file.write(head)
            shutil.copyfileobj(source, file, _CHUNK)
        else:
            # Without a time, so that equal archives have equal digests.
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                packed.write(head)
                shutil.copyfileobj(source, packed, _CHUNK)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove_unnamed(folder: Path, *, keep: Path) -> None:
    """Archives of earlier versions, and what an interrupted adoption left."""
    named = {archive.path for archive in _archives_in(folder)}
    for path in folder.glob("*.tar.gz"):
        if path not in named:
            path.unlink(missing_ok=True)
    for path in folder.glob(".new-*"):
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """The lock is on the folder itself: it needs no file and ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
