"""A git server over SSH: one key may read the repositories of a folder, and nothing else runs."""

from __future__ import annotations

import asyncio
import os
import shlex
import threading
from typing import TYPE_CHECKING, Self

import asyncssh

from tests.ground.process import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path


class GitSshServer:
    """Runs in a thread of its own. `requests` holds what was asked to be run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []
        self.client_key = asyncssh.generate_private_key("ssh-ed25519")
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._server: asyncssh.SSHAcceptor | None = None

    @property
    def port(self) -> int:
        assert self._server is not None, "the ssh server is not started"
        return int(self._server.get_port())

    @property
    def deploy_key(self) -> str:
        return self.client_key.export_private_key().decode()

    @property
    def public_key(self) -> str:
        """Of the server itself."""
        return self._host_key.export_public_key().decode()

    @property
    def known_hosts(self) -> str:
        return f"[{LOOPBACK}]:{self.port} {self.public_key}"

    def url(self, name: str) -> str:
        return f"ssh://git@{LOOPBACK}:{self.port}/{name}.git"

    def start(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        assert self._ready.wait(20), "the ssh server does not listen"
        return self

    def destroy(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        self._server.close()

    async def _listen(self) -> asyncssh.SSHAcceptor:
        allowed = asyncssh.import_authorized_keys(self.client_key.export_public_key().decode())
        return await asyncssh.listen(
            LOOPBACK,
            0,
            server_host_keys=[self._host_key],
            authorized_client_keys=allowed,
            process_factory=self._answer,
            encoding=None,
        )

    async def _answer(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Only git's own reading half, on a repository of the folder."""
        command = process.command or ""
        self.requests.append(command)
        program, _, name = command.partition(" ")
        folder = self.folder / shlex.split(name)[0].lstrip("/")
        if program != "git-upload-pack" or not folder.is_dir():
            process.stderr.write(b"no such repository\n")
            process.exit(128)
            return
        child = await asyncio.create_subprocess_exec(
            "git",
            "upload-pack",
            str(folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROTOCOL": process.env.get("GIT_PROTOCOL", ""),
            },
        )
        await process.redirect(stdin=child.stdin, stdout=child.stdout)
        process.exit(await child.wait())
