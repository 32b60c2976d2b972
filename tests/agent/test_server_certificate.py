"""Whom the agent believes to be its server."""

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.errors import ServerUnavailable
from agent.server.http import HttpServer


def certificate(folder: Path) -> Path:
    """A file with a key and the certificate of 127.0.0.1 that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority of ours")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "own.pem"
    path.write_bytes(text + signed.public_bytes(serialization.Encoding.PEM))
    return path


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return certificate(tmp_path)


@pytest.fixture
def address(own: Path) -> Iterator[str]:
    """A server whose certificate only its own authority vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_authority_of_ones_own_is_trusted_where_it_is_named(
    address: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable that the socket's library reads as well."""
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert HttpServer(address, token="t").check().body == b"{}"


def test_a_server_that_nobody_vouches_for_is_not_spoken_to(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(ServerUnavailable, match="SSLError"):
        HttpServer(address, token="t").check()
