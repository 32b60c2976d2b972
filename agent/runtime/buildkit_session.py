"""What an engine may ask of the agent while BuildKit builds: secrets and a registry's password.

The engine is the gRPC client here, on a connection that the agent opened. Pure: bytes in, bytes
out; `docker_buildkit` moves them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError, StreamClosedError

from agent.errors import EngineUnavailable
from agent.protocol import image_refs
from agent.runtime.protobuf import Malformed, Message, bytes_field, number_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h2.events import Event

    from agent.engine_requests import Credential

_SECRET: Final = "/moby.buildkit.secrets.v1.Secrets/GetSecret"  # noqa: S105  a method's name
_CREDENTIALS: Final = "/moby.filesync.v1.Auth/Credentials"
_HEALTH: Final = "/grpc.health.v1.Health/Check"
METHODS: Final = (_SECRET, _CREDENTIALS, _HEALTH)

_OK, _BAD_REQUEST, _NOT_FOUND, _UNKNOWN_METHOD = 0, 3, 5, 12
_SERVING: Final = number_field(1, 1)
# Compressed or not, and how long: in front of every gRPC message.
_PREFIX: Final = struct.Struct(">BI")
# Requests are names; what is longer is none of ours.
_LONGEST_REQUEST: Final = 64 * 1024


class BuildSession:
    """Answers for one build. `missing` are the secrets that it asked for and did not get."""

    def __init__(self, secrets: Mapping[str, str], credential: Credential | None) -> None:
        self.missing: list[str] = []
        self._secrets = secrets
        self._credential = credential
        self._http = H2Connection(config=H2Configuration(client_side=False))
        self._asked: dict[int, tuple[str, bytearray]] = {}
        # Answers that wait for room in the flow-control windows.
        self._waiting: dict[int, bytes] = {}

    def begin(self) -> bytes:
        self._http.initiate_connection()
        return self._http.data_to_send()

    def feed(self, data: bytes) -> bytes:
        """What to send back; raises EngineUnavailable when the other side makes no sense."""
        try:
            for event in self._http.receive_data(data):
                self._handle(event)
            for stream in list(self._waiting):
                self._send(stream)
        except ProtocolError as problem:
            raise EngineUnavailable(
                f"The container engine broke the build's session off: {problem}"
            ) from problem
        return self._http.data_to_send()

    def _handle(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            path = dict(event.headers).get(b":path", b"").decode(errors="replace")
            self._asked[event.stream_id] = (path, bytearray())
        elif isinstance(event, DataReceived):
            self._http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            _, body = self._asked.get(event.stream_id, ("", bytearray()))
            body += event.data[: _LONGEST_REQUEST - len(body)]
        elif isinstance(event, StreamEnded):
            path, body = self._asked.pop(event.stream_id, ("", bytearray()))
            self._answer(event.stream_id, *self._result(path, bytes(body)))
        elif isinstance(event, StreamReset):
            self._asked.pop(event.stream_id, None)
            self._waiting.pop(event.stream_id, None)

    def _result(self, path: str, body: bytes) -> tuple[int, bytes]:
        """A gRPC status and, if it is OK, the message."""
        try:
            asked = Message(body[_PREFIX.size :])
        except Malformed:
            return _BAD_REQUEST, b""
        if path == _HEALTH:
            return _OK, _SERVING
        if path == _SECRET:
            return self._secret(asked.text(1))
        if path == _CREDENTIALS:
            return _OK, self._password(asked.text(1))
        return _UNKNOWN_METHOD, b""

    def _secret(self, name: str) -> tuple[int, bytes]:
        value = self._secrets.get(name)
        if value is None:
            self.missing.append(name)
            return _NOT_FOUND, b""
        return _OK, bytes_field(1, value.encode())

    def _password(self, server: str) -> bytes:
        """Nothing for any other server than the one that it was given for."""
        given = self._credential
        if given is None:
            return b""
        # The machine that the Hub's images come from; a reference may name it as well.
        serves_hub = server == image_refs.HUB_API and given.server == image_refs.DOCKER_HUB
        if not serves_hub and not image_refs.is_same_server(server, given.server):
            return b""
        return bytes_field(1, given.username.encode()) + bytes_field(2, given.password.encode())

    def _answer(self, stream: int, status: int, message: bytes) -> None:
        head = [(":status", "200"), ("content-type", "application/grpc")]
        is_over = status != _OK
        told = [("grpc-status", str(status))] if is_over else []
        try:
            self._http.send_headers(stream, [*head, *told], end_stream=is_over)
        except StreamClosedError:
            # The engine took its question back in the same breath.
            return
        if not is_over:
            self._waiting[stream] = _PREFIX.pack(0, len(message)) + message

    def _send(self, stream: int) -> None:
        data = self._waiting[stream]
        try:
            while data:
                room = self._http.local_flow_control_window(stream)
                size = min(room, self._http.max_outbound_frame_size, len(data))
                if size <= 0:
                    break
                self._http.send_data(stream, data[:size])
                data = data[size:]
            if not data:
                self._http.send_headers(stream, [("grpc-status", str(_OK))], end_stream=True)
        except StreamClosedError:
            # Nobody waits for it any more.
            data = b""
        self._waiting[stream] = data
        if not data:
            del self._waiting[stream]
