"""As much of HTTP/1.1 as the Docker API proxy needs: heads, and where a body ends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

CHUNK = 65536
HEAD_LIMIT = 1 << 20


@dataclass(frozen=True)
class Head:
    """The first line and the headers of a request or a response, with the bytes they came as."""

    raw: bytes
    first: tuple[str, str, str]
    headers: dict[str, str]

    @property
    def status(self) -> int:
        """Status number of a response."""
        return int(self.first[1])

    @property
    def is_chunked(self) -> bool:
        """Tell whether the body comes in chunks."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        """Return the announced length of the body."""
        value = self.headers.get("content-length")
        return int(value) if value is not None else None


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read one head; None when the peer has closed the connection instead."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    lines = raw.decode("latin-1").split("\r\n")
    parts = [*lines[0].split(" ", 2), "", ""]
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return Head(raw, (parts[0], parts[1], parts[2]), headers)


async def read_body(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """Yield a body as it comes, in its wire form, to its end by chunks or by length."""
    if head.is_chunked:
        while True:
            line = await reader.readline()
            size = int(line.split(b";")[0], 16) if line.strip() else 0
            yield line + await reader.readexactly(size + 2)
            if size == 0:
                return
    left = head.length or 0
    while left > 0:
        data = await reader.read(min(CHUNK, left))
        if not data:
            return
        left -= len(data)
        yield data


async def read_until_closed(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield everything until the peer closes: a hijacked or an unbounded stream."""
    while data := await reader.read(CHUNK):
        yield data
