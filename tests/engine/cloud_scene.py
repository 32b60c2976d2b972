"""A pretended cloud beside a simulated host: its metadata address answers, as on a real one."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Self

from tests.ground import hostnet
from tests.ground.elsewhere import Elsewhere
from tests.ground.process import run

if TYPE_CHECKING:
    from tests.ground.engine import PrivateEngine

METADATA = "169.254.169.254"
METADATA_6 = "fd00:ec2::254"
SECRET = "credentials of the machine"
DNS, WEB = 53, 80


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = SECRET.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True


class Cloud:
    """`host` is the machine's own network, `guest` a neighbour that it forwards IPv6 for."""

    def __init__(self, engine: PrivateEngine) -> None:
        self._engine = engine
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        name = self._engine.host.name
        self.host = self._stack.enter_context(Elsewhere(hostnet.NAMESPACES / name))
        self.guest = self._stack.enter_context(Elsewhere())
        self._cloud = self._stack.enter_context(Elsewhere())
        self._join(self._cloud, "cloud0", ["169.254.169.253/30", "fd00:ec2::1/64"])
        self._settle(self._cloud, [f"{METADATA}/30", f"{METADATA_6}/64"])
        self._cloud.run(run, "ip", "route", "add", "default", "via", "169.254.169.253")
        self._cloud.run(run, "ip", "-6", "route", "add", "default", "via", "fd00:ec2::1")
        self._join(self.guest, "guest0", ["fd77::1/64"])
        self._settle(self.guest, ["fd77::2/64"])
        self.guest.run(run, "ip", "-6", "route", "add", "default", "via", "fd77::1")
        self.host.run(run, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        for port in (WEB, DNS):
            server = self._cloud.run(_Server, ("::", port), _Answer)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            self._stack.callback(server.server_close)
            self._stack.callback(server.shutdown)
        return self

    def __exit__(self, *_: object) -> None:
        for link in ("cloud0", "guest0"):
            self.host.run(run, "ip", "link", "del", link)
        self._stack.close()

    def _join(self, other: Elsewhere, link: str, addresses: list[str]) -> None:
        peer = ["peer", "name", "eth0", "netns", str(other.thread_id)]
        self.host.run(run, "ip", "link", "add", link, "type", "veth", *peer)
        _address(self.host, link, addresses)

    def _settle(self, there: Elsewhere, addresses: list[str]) -> None:
        there.run(run, "ip", "link", "set", "lo", "up")
        _address(there, "eth0", addresses)


def _address(there: Elsewhere, link: str, addresses: list[str]) -> None:
    # Without a wait for neighbours that might have the same address.
    there.run(run, "sysctl", "-qw", f"net.ipv6.conf.{link}.accept_dad=0")
    for address in addresses:
        further = ["nodad"] if ":" in address else []
        there.run(run, "ip", "addr", "add", address, "dev", link, *further)
    there.run(run, "ip", "link", "set", link, "up")
