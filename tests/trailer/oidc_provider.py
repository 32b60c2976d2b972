"""A small OpenID Connect provider on a local port: real HTTP, real signatures, forged on wish."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "trailer", "provider-secret"


@dataclass
class Grant:
    """What the person agreed to; `token` overrides claims of the token, None takes one away."""

    nonce: str
    challenge: str
    claims: dict[str, Any]
    token: dict[str, Any] = field(default_factory=dict)


class Provider:
    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signs_with = self.key
        self.grants: dict[str, Grant] = {}
        self.userinfo: dict[str, Any] = {}
        self.requests: list[dict[str, list[str]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(provider.answer(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._send(provider.token(parse_qs(body)))

            def _send(self, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(200 if content is not None else 400)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def agree(self, code: str, asked: dict[str, list[str]], **claims: Any) -> Grant:
        """The person signs in there and agrees; `asked` is the query of Trailer's redirect."""
        self.userinfo = {"sub": "subject-1", **claims}
        grant = Grant(asked["nonce"][0], asked["code_challenge"][0], self.userinfo)
        self.grants[code] = grant
        return grant

    def answer(self, path: str) -> Any:
        if path.startswith("/.well-known/"):
            names = ("authorization", "token", "userinfo")
            found = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in names}
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks", **found}
        if path == "/jwks":
            public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
            return {"keys": [{**public, "kid": "one", "alg": "RS256"}]}
        return self.userinfo if path == "/userinfo" else None

    def token(self, form: dict[str, list[str]]) -> Any:
        """A code works once, for this client, with the verifier of its challenge."""
        self.requests.append(form)
        grant = self.grants.pop(form["code"][0], None)
        if grant is None or form["client_secret"] != [CLIENT_SECRET]:
            return None
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "subject-1",
            "iat": now,
            "exp": now + 60,
            "nonce": grant.nonce,
            **grant.token,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        signed = jwt.encode(claims, self.signs_with, algorithm="RS256", headers={"kid": "one"})
        return {"access_token": "access", "id_token": signed, "token_type": "Bearer"}
