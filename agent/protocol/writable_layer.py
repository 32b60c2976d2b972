"""What a container has written outside its volumes, which a replace throws away."""

from __future__ import annotations

from typing import Final

import msgspec

# The server stops waiting then; the agent answers a little earlier with what it has.
SECONDS: Final = 3.0
MOST_PATHS_LOOKED_AT: Final = 200
MOST_PATHS_SHOWN: Final = 20


class WrittenPath(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    size_bytes: int


class WritableLayer(msgspec.Struct, frozen=True, kw_only=True):
    """`paths` are the largest of those looked at, largest first. Without `is_whole` some were not
    looked at: then `size_bytes` is what the engine says of the layer, and `file_count` is how many
    paths may be files."""

    size_bytes: int = 0
    file_count: int = 0
    deleted_count: int = 0
    paths: tuple[WrittenPath, ...] = ()
    is_whole: bool = True
