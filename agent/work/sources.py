"""Fetches what a Dockerfile adds from elsewhere, in the engine's place.

From judged addresses only: the engine would ask from its host's own network, where any member
could reach what listens there.
"""

from __future__ import annotations

import base64
import hashlib
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from agent import clock
from agent.errors import AddressRefused, FetchError, StepFailed
from agent.fetch.cancellation import Cancellation
from agent.fetch.client import HttpFetcher
from agent.fetch.port import Limits, Request
from agent.protocol.remote_sources import BadSource
from agent.runtime.dockerfile_sources import folder_of
from agent.runtime.port import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.fetch.port import Answer, Fetcher
    from agent.protocol.remote_sources import Add, Source

# As many as an engine follows.
_REDIRECTS: Final = 10
_PROGRESS_SECONDS: Final = 1.0
_CHUNK: Final = 256 * 1024
_BLOCK: Final = 512
_MEGABYTE: Final = 1_000_000
_UNNAMED: Final = "__unnamed__"
_SHOWN: Final = 300


@dataclass(frozen=True, kw_only=True)
class Sources:
    """`scratch` is where files lie until the engine has them; `allow` opens places beside the
    internet."""

    fetcher: Fetcher = field(default_factory=HttpFetcher)
    scratch: Path | None = None
    allow: tuple[str, ...] = ()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        if self.scratch is not None:
            self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self.scratch, prefix="build-") as name:
            yield Path(name)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`most_bytes` is for all of it together, of the host's whole limit `host_bytes`; `total` and
    `idle` are seconds."""

    adds: Sequence[Add]
    allow: tuple[str, ...] = ()
    most_bytes: int
    host_bytes: int
    total: float
    idle: float
    # Which of the two builders names the files.
    buildkit: bool = False


@dataclass(frozen=True)
class _File:
    """One that was fetched, as the engine would have written it."""

    path: Path
    name: str
    size: int
    modified: float


class Fetching(Iterator[Output]):
    """Tells how it goes while it fetches; another thread may close it. After its last word
    `archive` has the files, which lie in `folder`."""

    def __init__(self, fetcher: Fetcher, folder: Path, plan: Plan) -> None:
        self._fetcher = fetcher
        self._folder = folder
        self._plan = plan
        self._left = plan.most_bytes
        self._cancellation = Cancellation()
        self._files: list[_File] = []
        self._outputs = self._fetched()

    def __next__(self) -> Output:
        return next(self._outputs)

    def close(self) -> None:
        self._cancellation.cancel()

    def archive(self) -> Iterator[bytes]:
        """All of them in a tar file, made while it is read."""
        for number, file in enumerate(self._files):
            entry = tarfile.TarInfo(f"{folder_of(number)}/{file.name}")
            # As an engine writes what it fetched.
            entry.size, entry.mode, entry.mtime = file.size, 0o600, file.modified
            yield entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            with file.path.open("rb") as content:
                while data := content.read(_CHUNK):
                    yield data
            yield b"\0" * (-file.size % _BLOCK)
        yield b"\0" * (2 * _BLOCK)

    def _fetched(self) -> Iterator[Output]:
        for add in self._plan.adds:
            for source in add.remote:
                try:
                    yield from self._one(add, source)
                except (FetchError, BadSource) as problem:
                    raise StepFailed(_sentence(add, source, problem)) from problem
        yield Output(is_last=True)

    def _one(self, add: Add, source: Source) -> Iterator[Output]:
        yield Output(text=f"Fetching {source.url[:_SHOWN]}\n")
        request = Request(
            url=source.url,
            authorization=_basic(source.user),
            allow=self._plan.allow,
            limits=Limits(
                total=self._plan.total,
                idle=self._plan.idle,
                # A bit more, so that the sentence can name the host's limit.
                size=max(0, self._left) + _CHUNK,
                redirects=_REDIRECTS,
            ),
        )
        path = self._folder / str(len(self._files))
        digest, size, told_at = hashlib.sha256(), 0, clock.monotonic()
        with self._fetcher.open(request, self._cancellation) as answer, path.open("wb") as file:
            if not 200 <= answer.status < 300:
                raise FetchError(f"The server answered {answer.status}.")
            name = _name(add, source, answer, buildkit=self._plan.buildkit)
            modified = _modified(answer.headers.get("last-modified", ""))
            for data in answer:
                file.write(data)
                digest.update(data)
                size += len(data)
                if size > self._left:
                    raise FetchError(
                        f"With it the build has more than {self._plan.host_bytes} bytes, which is "
                        "what this host takes (build_context_bytes)."
                    )
                if clock.monotonic() - told_at >= _PROGRESS_SECONDS:
                    told_at = clock.monotonic()
                    yield Output(text=f"  {size / _MEGABYTE:.1f} MB\n")
        if add.checksum and add.checksum != f"sha256:{digest.hexdigest()}":
            raise FetchError(f"Its checksum is sha256:{digest.hexdigest()}, not {add.checksum}.")
        self._left -= size
        self._files.append(_File(path, name, size, modified))
        yield Output(text=f"  {size} bytes\n")


def _name(add: Add, source: Source, answer: Answer, *, buildkit: bool) -> str:
    """BuildKit looks at the address only; the older builder asks the server then."""
    if name := source.file_name(buildkit=buildkit):
        return name
    if not buildkit:
        said = Message()
        said["Content-Disposition"] = answer.headers.get("content-disposition", "")
        name = (said.get_filename() or "").rpartition("/")[2]
        if name and name not in {".", ".."} and name.isprintable():
            return name
        if add.destination.endswith("/"):
            raise FetchError("It has no file name: end the destination with one.")
    return _UNNAMED


def _modified(text: str) -> float:
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp())
    return 0.0


def _basic(user: str) -> str:
    if not user:
        return ""
    name, _, password = user.partition(":")
    pair = f"{unquote(name)}:{unquote(password)}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _sentence(add: Add, source: Source, problem: Exception) -> str:
    what = f"Line {add.first + 1} of the Dockerfile: {source.url[:_SHOWN]} could not be fetched."
    if isinstance(problem, AddressRefused):
        return f"{what} {problem} An administrator can allow it with TRAILER_BUILD_ALLOW."
    return f"{what} {problem}"
