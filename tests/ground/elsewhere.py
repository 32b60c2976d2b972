"""Python in another network: of a simulated host, or a new one that ends with the test."""

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

_CLONE_NEWNET = 0x40000000
P = ParamSpec("P")
Result = TypeVar("Result")


class Elsewhere:
    """One thread of this process that has left its network; sockets stay where they were made.

    Without a `place` the network is a new one, which nothing but this thread and its sockets
    keep: there is nothing to clean up, even after a test run that was killed.
    """

    def __init__(self, place: Path | None = None) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(max_workers=1, initializer=self._leave)
        self.thread_id = self.run(threading.get_native_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def run(self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """Do it there; processes that are started there stay there."""
        return self._thread.submit(work, *args, **kwargs).result()

    def _leave(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if self._place is None:
            failed = libc.unshare(_CLONE_NEWNET)
        else:
            with self._place.open() as namespace:
                failed = libc.setns(namespace.fileno(), _CLONE_NEWNET)
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
