"""Terminals and logs through the whole product: echo of a key, a line's way, lines a second."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from websockets.sync.client import connect

from tests.bench.table import Row, percentile
from tests.e2e.scenario import User

if TYPE_CHECKING:
    from tests.ground.engine import PrivateEngine
    from tests.ground.server import RunningTrailer

# Says back what it is told; a line that begins with "#" asks for that many lines.
_SCRIPT = """
trap 'exit 0' TERM
while read -r word; do
  case $word in
    '#'*) yes 'line of the flood, long enough to be like the others' | head -n ${word#?} ;;
    *) echo $word ;;
  esac
done
"""
PROGRAM = ["sh", "-c", _SCRIPT]
ECHO_P95 = 0.1


def session_rows(engine: PrivateEngine, trailer: RunningTrailer, *, quick: bool) -> list[Row]:
    user = User(trailer)
    workspace = user.running("spoken", command=PROGRAM)
    rounds = 100 if quick else 500
    rows = _echo_rows(trailer, workspace, rounds)
    with closing(engine.client()) as client:
        stdin: Any = client.api.attach_socket("trailer-spoken", {"stdin": 1, "stream": 1})
        with closing(stdin):
            rows += _line_rows(trailer, workspace, stdin._sock, rounds)
            rows.append(_flood_row(trailer, workspace, stdin._sock, 100_000 if quick else 500_000))
    return rows


def _open(trailer: RunningTrailer, workspace: Any, kind: str) -> Any:
    address = trailer.url.replace("http", "ws", 1) + f"/ws/workspaces/{workspace['id']}/{kind}"
    return connect(
        address,
        additional_headers={"Authorization": f"Token {trailer.token()}"},
        proxy=None,
        compression=None,
    )


def _echo_rows(trailer: RunningTrailer, workspace: Any, rounds: int) -> list[Row]:
    taken = []
    with _open(trailer, workspace, "exec/?cmd=cat") as socket:
        while "session" not in str(socket.recv(timeout=15)):
            continue
        for number in range(rounds):
            key = b"abcdefghij"[number % 10 : number % 10 + 1]
            begun = time.perf_counter()
            socket.send(key)
            while key not in socket.recv(timeout=15):
                continue
            taken.append(time.perf_counter() - begun)
    return [
        Row("key typed → echo, p50", 1000 * percentile(taken, 50), "ms", detail=f"n={rounds}"),
        Row("key typed → echo, p95", 1000 * percentile(taken, 95), "ms", 1000 * ECHO_P95),
    ]


def _line_rows(trailer: RunningTrailer, workspace: Any, stdin: Any, rounds: int) -> list[Row]:
    taken = []
    with _open(trailer, workspace, "logs/?tail=0") as socket:
        _until_followed(socket, stdin)
        for number in range(rounds):
            line = b"tick-%06d\n" % number
            begun = time.perf_counter()
            stdin.sendall(line)
            seen = b""
            while line not in seen:
                seen += socket.recv(timeout=15)
            taken.append(time.perf_counter() - begun)
    detail = f"n={rounds}, from the program's input on"
    return [
        Row("log line → WebSocket, p50", 1000 * percentile(taken, 50), "ms", detail=detail),
        Row("log line → WebSocket, p99", 1000 * percentile(taken, 99), "ms"),
    ]


def _until_followed(socket: Any, stdin: Any) -> None:
    """The engine says that it follows a moment before it does."""
    socket.recv(timeout=15)
    for number in range(100):
        mark = b"ready-%d\n" % number
        stdin.sendall(mark)
        try:
            while mark not in socket.recv(timeout=0.5):
                continue
        except TimeoutError:
            continue
        return


def _flood_row(trailer: RunningTrailer, workspace: Any, stdin: Any, lines: int) -> Row:
    with _open(trailer, workspace, "logs/?tail=0") as socket:
        _until_followed(socket, stdin)
        begun = time.perf_counter()
        stdin.sendall(b"#%d\n" % lines)
        seen, size = 0, 0
        while seen < lines:
            data = socket.recv(timeout=60)
            seen += data.count(b"\n")
            size += len(data)
        taken = time.perf_counter() - begun
    detail = f"{lines} lines, {size / taken / 1e6:.1f} MB/s, the engine's writing included"
    return Row("log lines a second to one viewer", lines / taken, "lines/s", detail=detail)
