"""The server over HTTP: timeouts, errors as types, and nothing parsed that was not asked for."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import requests

from agent.errors import LogOffsetMoved, Revoked, ServerError, ServerUnavailable, Superseded
from agent.protocol import PROTOCOL_VERSION
from agent.protocol.report import Report, ReportReply
from agent.protocol.session import (
    AgentImages,
    EnrolReply,
    EnrolRequest,
    Heartbeat,
    HeartbeatReply,
    SessionReply,
    SessionRequest,
    TokenReply,
    TokenRequest,
)
from agent.server.plain_http import PrivateHttpAdapter
from agent.server.port import Fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.server.port import Token

_TIMEOUT = (5.0, 30.0)
_LONGEST_WISH = 600.0
_PIECE = 256 * 1024

Message = TypeVar("Message", bound=msgspec.Struct)


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""
    offset: int = 0


class _LogReply(msgspec.Struct, frozen=True):
    offset: int


class FixedToken:
    """Of somebody who has one question, or none that needs a token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def current(self) -> str:
        return self._token

    def replace(self, new: str) -> bool:
        return False

    def after_refusal(self, refused: str, is_known: Callable[[str], bool | None]) -> str:
        return ""


class HttpServer:
    """Each thread keeps its own connection: requests' sessions are not made for sharing."""

    def __init__(
        self, base_url: str, *, token: str | Token = "", plain_http: bool = False
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._plain_http = plain_http
        self._token = FixedToken(token) if isinstance(token, str) else token
        self._local = threading.local()

    def token(self) -> str:
        return self._token.current()

    def renew_token(self, *, epoch: int) -> bool:
        reply = self._exchange("/token", TokenRequest(epoch=epoch), TokenReply)
        return self._token.replace(reply.token)

    def enrol(self, request: EnrolRequest) -> EnrolReply:
        return self._exchange("/enrol", request, EnrolReply)

    def open_session(self, request: SessionRequest) -> SessionReply:
        return self._exchange("/session", request, SessionReply)

    def report(self, report: Report) -> ReportReply:
        return self._exchange("/report", report, ReportReply)

    def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        return self._exchange("/heartbeat", heartbeat, HeartbeatReply)

    def fetch_state(self, *, epoch: int, etag: str) -> Fetched | None:
        headers = {"Trailer-Epoch": str(epoch)}
        if etag:
            headers["If-None-Match"] = etag
        response = self._send("GET", "/state", headers=headers)
        if response.status_code == 304:
            return None
        _check(response)
        return Fetched(body=response.content, etag=response.headers.get("ETag", ""))

    def check(self) -> Fetched:
        response = self._send("GET", "/check")
        _check(response)
        return Fetched(body=response.content, etag=response.headers.get("ETag", ""))

    def agent_images(self) -> AgentImages:
        response = self._send("GET", "/images")
        if response.status_code == 404:
            # A server of an earlier version.
            return AgentImages()
        _check(response)
        return _decoded(response, AgentImages)

    def agent_archive(self, digest: str, *, start: int) -> tuple[int, Iterator[bytes]]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        response = self._send("GET", f"/images/{digest}", headers=headers, stream=True)
        if not 200 <= response.status_code < 300:
            with response:
                _check(response)
        return start if response.status_code == 206 else 0, _pieces(response)

    def append_log(self, build_id: str, *, epoch: int, offset: int, data: bytes) -> int:
        response = self._send(
            "POST",
            f"/builds/{build_id}/log?offset={offset}",
            data=data,
            headers={"Trailer-Epoch": str(epoch), "Content-Type": "application/octet-stream"},
        )
        _check(response)
        return _decoded(response, _LogReply).offset

    def _exchange(self, path: str, message: msgspec.Struct, answer: type[Message]) -> Message:
        response = self._send(
            "POST",
            path,
            data=msgspec.json.encode(message),
            headers={"Content-Type": "application/json"},
        )
        _check(response)
        return _decoded(response, answer)

    def _send(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """A refused request did nothing: it is sent again when there is a better token."""
        token = self._token.current()
        response = self._send_as(token, method, path, **arguments)
        if response.status_code != 401 or not token:
            return response
        better = self._token.after_refusal(token, self._is_known)
        return self._send_as(better, method, path, **arguments) if better else response

    def _is_known(self, token: str) -> bool | None:
        status = self._send_as(token, "GET", "/check").status_code
        return {200: True, 401: False}.get(status)

    def _send_as(self, token: str, method: str, path: str, **arguments: Any) -> requests.Response:
        headers = {**arguments.pop("headers", {}), "Trailer-Protocol": str(PROTOCOL_VERSION)}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            return self._session().request(
                method,
                f"{self._base_url}/api/agent/v1{path}",
                headers=headers,
                timeout=_TIMEOUT,
                allow_redirects=False,
                **arguments,
            )
        except requests.RequestException as problem:
            raise ServerUnavailable(
                f"The server {self._base_url} cannot be reached: {type(problem).__name__}."
            ) from problem

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            # A netrc entry of the user who runs the agent must not replace its token.
            session.trust_env = False
            # An authority of the operator's own; the realtime socket reads the same variable.
            session.verify = os.environ.get("SSL_CERT_FILE") or True
            if not self._plain_http:
                session.mount("http://", PrivateHttpAdapter())
            self._local.session = session
        return session


def _pieces(response: requests.Response) -> Iterator[bytes]:
    """The body as it comes; it may be too large for the memory."""
    try:
        with response:
            yield from response.iter_content(_PIECE)
    except requests.RequestException as problem:
        raise ServerUnavailable(f"The download broke off: {type(problem).__name__}.") from problem


def _check(response: requests.Response) -> None:
    status = response.status_code
    if 200 <= status < 300:
        return
    problem = _problem(response)
    sentence = problem.message or f"The server answered {status}."
    if status == 401:
        raise Revoked(sentence)
    if status == 409 and problem.code == "superseded":
        raise Superseded(sentence)
    if status == 409 and problem.code == "offset":
        raise LogOffsetMoved(problem.offset)
    if status == 429 or status >= 500 or status < 400:
        raise ServerUnavailable(sentence, retry_after=_retry_after(response))
    raise ServerError(sentence)


def _problem(response: requests.Response) -> _Problem:
    try:
        return msgspec.json.decode(response.content, type=_Problem)
    except msgspec.MsgspecError:
        return _Problem()


def _retry_after(response: requests.Response) -> float | None:
    try:
        return min(_LONGEST_WISH, max(0.0, float(response.headers["Retry-After"])))
    except (KeyError, ValueError):
        return None


def _decoded(response: requests.Response, answer: type[Message]) -> Message:
    try:
        return msgspec.json.decode(response.content, type=answer)
    except msgspec.MsgspecError as problem:
        raise ServerUnavailable(f"The server's answer makes no sense: {problem}") from problem
