"""A small web application for tests of workspaces' URLs: plain HTTP, streams, WebSockets.

Runs as a program of its own: `python url_app.py PORT [ADDRESS]`.
"""

import asyncio
import hashlib
import json
import signal
import sys
from typing import Any

import h11
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

MEGABYTE = 1024 * 1024
COOKIES = (
    "own=1; Path=/",
    "named=1; Domain=.box.localhost; Path=/",
    "parent=1; Domain=localhost; Path=/",
    "sessionid=stolen; Path=/",
    "trailer_url=stolen; Path=/",
)


PAGE = """<!doctype html><title>app</title><h1>hello from the app</h1><p id="heard"></p><script>
const socket = new WebSocket(`ws://${location.host}/ws`);
socket.onopen = () => socket.send("from the page");
socket.onmessage = (event) => { document.getElementById("heard").textContent = event.data; };
socket.onclose = () => { document.getElementById("heard").textContent = "cut"; };
</script>"""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"upgrade: websocket" in head.lower():
            await echo(head, reader, writer)
        else:
            await Answers(reader, writer).run(head)
    except (ConnectionError, asyncio.IncompleteReadError, h11.RemoteProtocolError):
        pass
    finally:
        writer.close()


class Answers:
    """HTTP/1.1 on one connection, kept alive."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http = h11.Connection(h11.SERVER)

    async def run(self, head: bytes) -> None:
        self.http.receive_data(head)
        while True:
            request = await self.event()
            if not isinstance(request, h11.Request):
                return
            await self.answer(request)
            if self.http.our_state is h11.MUST_CLOSE:
                return
            self.http.start_next_cycle()

    async def event(self) -> Any:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(65536))
        return event

    async def body(self) -> tuple[int, str]:
        count, digest = 0, hashlib.sha256()
        while isinstance(event := await self.event(), h11.Data):
            count += len(event.data)
            digest.update(event.data)
        return count, digest.hexdigest()

    async def answer(self, request: h11.Request) -> None:
        path, _, query = bytes(request.target).decode().partition("?")
        if path == "/early":
            return await self.say(413, b"too much", [("connection", "close")])
        if path == "/talk":
            return await self.talk()
        count, digest = await self.body()
        if path == "/upload":
            return await self.say(200, json.dumps({"bytes": count, "sha256": digest}).encode())
        if path == "/headers":
            fields = [[n.decode(), v.decode()] for n, v in request.headers]
            return await self.say(200, json.dumps(fields).encode())
        if path == "/download":
            return await self.download(int(query))
        if path == "/drip":
            return await self.drip(int(query))
        if path == "/twice":
            # Two lengths in one answer: what follows the shorter one would be a second answer.
            self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")
            self.writer.write(b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n")
            await self.writer.drain()
            raise ConnectionResetError
        if path == "/break":
            await self.send(h11.Response(status_code=200, headers=[("content-length", "99")]))
            self.writer.write(b"half")
            await self.writer.drain()
            raise ConnectionResetError
        if path == "/fields":
            extra = [("set-cookie", cookie) for cookie in COOKIES]
            extra += [("strict-transport-security", "max-age=9"), ("clear-site-data", '"*"')]
            extra += [("access-control-allow-origin", "*"), ("x-own", "kept")]
            return await self.say(200, b"fields", extra)
        page = PAGE.encode()
        return await self.say(200, page, [("content-type", "text/html")])

    async def say(
        self, status: int, body: bytes, extra: list[tuple[str, str]] | None = None
    ) -> None:
        fields = [("content-length", str(len(body))), *(extra or [])]
        await self.send(h11.Response(status_code=status, headers=fields))
        await self.send(h11.Data(data=body))
        await self.send(h11.EndOfMessage())

    async def download(self, megabytes: int) -> None:
        fields = [("content-length", str(megabytes * MEGABYTE))]
        await self.send(h11.Response(status_code=200, headers=fields))
        piece = b"x" * 65536
        for _ in range(megabytes * 16):
            await self.send(h11.Data(data=piece))
        await self.send(h11.EndOfMessage())

    async def drip(self, lines: int) -> None:
        await self.send(h11.Response(status_code=200, headers=[("content-type", "text/plain")]))
        for number in range(lines):
            await self.send(h11.Data(data=f"line {number}\n".encode()))
            await asyncio.sleep(0.3)
        await self.send(h11.EndOfMessage())

    async def talk(self) -> None:
        """Answers each piece of the request while it still arrives."""
        await self.send(h11.Response(status_code=200, headers=[]))
        while isinstance(event := await self.event(), h11.Data):
            await self.send(h11.Data(data=b"heard " + bytes(event.data)))
        await self.send(h11.EndOfMessage())

    async def send(self, event: Any) -> None:
        data = self.http.send(event)
        if data:
            self.writer.write(data)
            await self.writer.drain()


async def echo(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    protocol = ServerProtocol(max_size=16 * MEGABYTE)
    protocol.receive_data(head)
    data = b"?"
    while data:
        for event in protocol.events_received():
            if isinstance(event, Request):
                protocol.send_response(protocol.accept(event))
            elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                protocol.send_text(b"echo " + event.data)
            elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
                protocol.send_binary(event.data)
        for piece in protocol.data_to_send():
            writer.write(piece)
        await writer.drain()
        if protocol.close_expected():
            return
        data = await reader.read(65536)
        protocol.receive_data(data) if data else protocol.receive_eof()


async def main() -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: sys.exit(0))
    port, *address = sys.argv[1:]
    # On its loopback alone, unless told otherwise: that is where many programs listen.
    own = address[0] if address else "127.0.0.1"
    server = await asyncio.start_server(serve, own, int(port), limit=MEGABYTE)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
