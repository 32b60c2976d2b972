"""Requests one after the other on several connections, from a process of their own."""

from __future__ import annotations

import http.client
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

CONNECTIONS = 8


@dataclass(frozen=True)
class Request:
    """`status` is the only answer that counts."""

    path: str
    headers: dict[str, str]
    status: int = 200


def ask(url: str, request: Request, seconds: float) -> list[float]:
    """How long each answer took. In another process: threads that ask must not wait for those of
    the bench."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_load, url, request, seconds).result(seconds + 60)


def _load(url: str, request: Request, seconds: float) -> list[float]:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        asking = [pool.submit(_ask, url, request, seconds) for _ in range(CONNECTIONS)]
        return [each for one in asking for each in one.result()]


def _ask(url: str, request: Request, seconds: float) -> list[float]:
    times = []
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        begun = time.monotonic()
        connection.request("GET", request.path, headers=request.headers)
        reply = connection.getresponse()
        reply.read()
        assert reply.status == request.status, f"{request.path}: {reply.status}"
        times.append(time.monotonic() - begun)
    connection.close()
    return times
