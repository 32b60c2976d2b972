"""What Caddy does to requests with the rules of deploy/Caddyfile."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.ground import front_door, process
from tests.ground.wait import eventually


def repeat(wire: socket.socket) -> None:
    """Answer each piece of a request at once, before the next is there."""
    with wire, wire.makefile("rb") as request, suppress(ConnectionError):
        while request.readline() != b"\r\n":
            pass
        wire.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while length := int(request.readline() or b"0", 16):
            piece = b"heard " + request.read(length)
            request.readline()
            wire.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        wire.sendall(b"0\r\n\r\n")


@pytest.fixture
def app() -> Iterator[int]:
    """The port of a program that answers while its request still arrives."""
    with socket.create_server((process.LOOPBACK, 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=repeat, args=(server.accept()[0],)).start()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def door(app: int, tmp_path: Path) -> Iterator[int]:
    """The port of Caddy in front of it."""
    port = process.free_port()
    text = front_door.rules(
        port=port,
        url_domain="localhost",
        web=f"{process.LOOPBACK}:1",
        sockets=f"{process.LOOPBACK}:{app}",
    )
    caddy = process.start(front_door.command(tmp_path, text), tmp_path / "log")
    try:
        eventually(lambda: process.accepts_connections(port), 30, "Caddy does not listen")
        yield port
    finally:
        process.stop(caddy)


def test_an_answer_that_begins_before_its_request_has_ended_arrives_whole(door: int) -> None:
    never = threading.Event()

    def pieces() -> Iterator[bytes]:
        for number in range(5):
            # Time for the answer to the piece before to be on its way.
            never.wait(0.1)
            yield f"piece {number} ".encode()

    with requests.post(
        f"http://{process.LOOPBACK}:{door}/",
        data=pieces(),
        headers={"Host": f"box.localhost:{door}"},
        stream=True,
        timeout=30,
    ) as reply:
        text = b"".join(reply.iter_content(None))
    assert text == b"".join(b"heard piece %d " % number for number in range(5))
