"""The folders that git works in: removed when it ends, also those of a process that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "trailer-git-"
# Between making a folder and locking it; far more than that takes.
_NEW_SECONDS: Final = 10


@contextmanager
def work_folder() -> Iterator[Path]:
    """Locked for as long as its process lives: the kernel gives the lock back when it is killed,
    and the next one removes the deploy key that may lie there."""
    folders_sweep()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        held = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(held)


def folders_sweep() -> None:
    """At a start, and before each use. Whatever is somebody's, or may just be made, stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # it went meanwhile, or is nothing of ours
        try:
            found = os.fstat(held)
            if found.st_uid == os.getuid() and found.st_mtime < time.time() - _NEW_SECONDS:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(held)
