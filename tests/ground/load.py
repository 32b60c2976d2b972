"""Requests at a steady pace from several threads, with everything that was not answered as it
should be."""

from __future__ import annotations

import http.client
import threading
import time
from typing import Self


class Load:
    """`host` is the name that is asked for; the connections lead to `address`, port 80."""

    def __init__(
        self, address: str, host: str, *, per_second: float = 120, threads: int = 6
    ) -> None:
        self._address, self._host = address, host
        self._pause = threads / per_second
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        self._lock = threading.Lock()
        self.answered = 0
        self.failed: list[str] = []
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(30)
        self.seconds = time.monotonic() - self._begun

    def _run(self) -> None:
        connection = http.client.HTTPConnection(self._address, 80, timeout=20)
        due = time.monotonic()
        while not self._ended.is_set():
            problem = ""
            try:
                connection.request("GET", "/", headers={"Host": self._host})
                reply = connection.getresponse()
                reply.read()
                problem = "" if reply.status == 200 else f"status {reply.status}"
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
                connection.close()
            with self._lock:
                self.answered += not problem
                if problem:
                    at = time.monotonic() - self._begun
                    self.failed.append(f"{at:.1f} s: {problem}")
            due = max(due + self._pause, time.monotonic())
            self._ended.wait(due - time.monotonic())
        connection.close()
