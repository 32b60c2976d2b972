"""Connections to a Docker engine: lazy, one per class of deadline, errors in our own types."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import docker
import requests
from docker.auth import encode_header
from docker.errors import APIError, DockerException
from docker.types.daemon import CancellableStream
from docker.utils import kwargs_from_env
from urllib3.exceptions import HTTPError as TransportError

from agent.errors import Conflict, EngineError, EngineUnavailable, NotFound

QUICK = 10
CHANGE = 60
# Enough for every worker that may call at once; more would only be idle connections.
_POOL = 16

Result = TypeVar("Result")


class RecordingClient(docker.APIClient):
    """Remembers its last answer so that a silent stream can be cut from another thread, and sends
    registry passwords only where it is told to, never those of the user who runs the agent."""

    build_credentials: dict[str, dict[str, str]]
    last_response: requests.Response | None = None

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        response = super().send(request, **kwargs)
        self.last_response = response
        return response

    def _set_auth_headers(self, headers: dict[str, Any]) -> None:
        credentials = getattr(self, "build_credentials", {})
        headers["X-Registry-Config"] = encode_header(credentials)


class Connections:
    """Counts every call, negotiates the API version once."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._settings: dict[str, Any] = dict(kwargs_from_env(environment=environment))
        self._lock = threading.Lock()
        self._clients: dict[int | None, RecordingClient] = {}
        self._version = ""
        self._calls = 0

    @property
    def calls(self) -> int:
        return self._calls

    def run(self, call: Callable[[Any], Result], *, deadline: int = QUICK) -> Result:
        """One engine call. The deadline belongs to the client that makes it."""
        with self._lock:
            self._calls += 1
        try:
            return call(self.client(deadline))
        except Exception as problem:
            translated = own_error(problem)
            if translated is problem:
                raise
            raise translated from problem

    def remove_container(self, container_id: str, *, with_volumes: bool = False) -> None:
        """One that is gone, or that somebody is removing just now, is what was wanted."""
        try:
            self.run(
                lambda api: api.remove_container(container_id, v=with_volumes, force=True),
                deadline=CHANGE,
            )
        except NotFound:
            return
        except Conflict as problem:
            if "already in progress" not in str(problem):
                raise

    def client(self, deadline: int | None) -> RecordingClient:
        with self._lock:
            known = self._clients.get(deadline)
        if known is not None:
            return known
        client = self.own_client(deadline)
        with self._lock:
            return self._clients.setdefault(deadline, client)

    def own_client(self, deadline: int | None) -> RecordingClient:
        """A connection nobody else uses: closing it ends what runs on it."""
        version = self._negotiated()
        return RecordingClient(
            **self._settings, version=version, timeout=deadline or QUICK, max_pool_size=_POOL
        )

    def _negotiated(self) -> str:
        if not self._version:
            try:
                probe = RecordingClient(**self._settings, version="auto", timeout=QUICK)
            except DockerException as problem:
                raise own_error(problem) from problem
            self._version = probe.api_version
            probe.close()
        return self._version


class CuttableStream(Iterator[Result]):
    """A long answer; `close` may be called by another thread and ends the engine's work."""

    def __init__(self, items: Iterator[Result], client: RecordingClient) -> None:
        self._items = items
        self._client = client
        self._closed = False

    def __next__(self) -> Result:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except Exception as problem:
            if self._closed:
                raise StopIteration from None
            translated = own_error(problem)
            if translated is problem:
                raise
            raise translated from problem

    def close(self) -> None:
        self._closed = True
        response = self._client.last_response
        if response is not None and not response.raw.closed:
            try:
                CancellableStream(iter(()), response).close()
            except (OSError, AttributeError, DockerException):
                # Already over: there is no socket left to cut.
                response.close()
        self._client.close()


def own_error(problem: Exception) -> Exception:
    """What the engine or the way to it said, as one of our types; a bug stays what it is."""
    if isinstance(problem, APIError):
        return _refusal(problem)
    if isinstance(problem, requests.exceptions.Timeout) or "timed out" in str(problem).lower():
        return EngineUnavailable("The container engine did not answer in time.")
    # A stream that breaks shows the bare error of the transport.
    away = requests.exceptions.RequestException | DockerException | OSError | TransportError
    if isinstance(problem, away):
        return EngineUnavailable(f"The container engine cannot be reached: {_short(problem)}")
    return problem


def _refusal(problem: APIError) -> EngineError:
    text = str(problem.explanation or problem).strip()
    status = problem.status_code
    if status == 404:
        return NotFound(text)
    if status == 409:
        return Conflict(text)
    return EngineError(text)


def _short(problem: Exception) -> str:
    """The innermost reason, without the wrapping of three libraries."""
    inner: BaseException = problem
    while inner.__cause__ or inner.__context__:
        inner = inner.__cause__ or inner.__context__ or inner
    return str(inner) or type(inner).__name__
