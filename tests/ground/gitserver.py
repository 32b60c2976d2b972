"""A git server on this machine: smart HTTP by git's own backend, with commits made in one call."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from tests.ground.process import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Mapping

REGULAR, SYMLINK, SUBMODULE = "100644", "120000", "160000"


@dataclass
class GitRepository:
    """A bare repository; `commit` adds to a branch without any working tree."""

    name: str
    folder: Path
    url: str
    _count: int = 0

    @property
    def file_url(self) -> str:
        return self.folder.as_uri()

    def commit(
        self,
        files: Mapping[str, str | bytes | None],
        message: str = "Change",
        *,
        branch: str = "main",
        author: str = "Ada Example",
        mode: str = REGULAR,
    ) -> str:
        """Write the files (None removes one) and return the new commit's id."""
        self._count += 1
        ref = f"refs/heads/{branch}"
        stream = [
            f"commit {ref}\nauthor {author} <ada@example.com> {1_700_000_000 + self._count} "
        ]
        stream.append("+0000\ncommitter Git Server <git@example.com> ")
        stream.append(f"{1_700_000_000 + self._count} +0000\n")
        parts: list[bytes] = ["".join(stream).encode(), _data(message.encode())]
        if self.head(branch):
            parts.append(f"from {ref}^0\n".encode())
        for path, content in files.items():
            if content is None:
                parts.append(f"D {path}\n".encode())
            elif mode == SUBMODULE:
                parts.append(f"M {mode} {content!s} {path}\n".encode())
            else:
                raw = content.encode() if isinstance(content, str) else content
                parts += [f"M {mode} inline {path}\n".encode(), _data(raw)]
        self.git("fast-import", "--quiet", "--force", input_bytes=b"".join(parts))
        return self.head(branch)

    def head(self, branch: str = "main") -> str:
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}").strip()

    def git(self, *arguments: str, input_bytes: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments],
            input=input_bytes,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()


def _data(raw: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(raw), raw)


@dataclass
class GitServer:
    """Serves every repository of its folder. What it was asked is in `requests`.

    With `password` it wants Basic authentication; `redirect_to` makes every answer a redirect;
    clearing `go` holds every answer back until it is set again.
    """

    password: str = ""
    username: str = "git"
    redirect_to: str = ""
    requests: list[str] = field(default_factory=list)
    folder: Path = field(
        default_factory=lambda: Path(tempfile.mkdtemp(prefix="trailer-test-git-"))
    )
    go: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def start(self) -> Self:
        self.go.set()
        handler = type("Handler", (_Handler,), {"ground": self})
        self._server = ThreadingHTTPServer((LOOPBACK, 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    @property
    def port(self) -> int:
        assert self._server is not None, "the git server is not started"
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def allow(self) -> str:
        """What TRAILER_GIT_ALLOW needs so that its repositories may be read, by HTTP and file."""
        return f"{self.url},{self.folder.as_uri()}"

    def repository(self, name: str) -> GitRepository:
        """A new, empty repository."""
        folder = self.folder / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
        made = GitRepository(name, folder, f"{self.url}/{name}.git")
        made.git("config", "uploadpack.allowFilter", "true")
        made.git("config", "uploadpack.allowAnySHA1InWant", "true")
        return made

    def destroy(self) -> None:
        self.go.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Handler(BaseHTTPRequestHandler):
    ground: GitServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """The requests are kept in a list; nothing is printed."""

    def _answer(self) -> None:
        ground = self.ground
        ground.requests.append(f"{self.command} {self.path}")
        ground.go.wait(60)
        if ground.redirect_to:
            self.send_response(302)
            self.send_header("Location", ground.redirect_to + self.path)
            self.end_headers()
        elif not self._is_allowed():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._run_backend()

    def _is_allowed(self) -> bool:
        if not self.ground.password:
            return True
        pair = f"{self.ground.username}:{self.ground.password}".encode()
        return self.headers.get("Authorization") == f"Basic {base64.b64encode(pair).decode()}"

    def _run_backend(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.ground.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_ADDR": LOOPBACK,
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
