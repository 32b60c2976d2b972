"""A container registry on this machine, open or behind a password."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Self

import requests

from tests.ground import process
from tests.ground.hostnet import SHARED_PORTS
from tests.ground.wait import eventually


class LocalRegistry:
    """Debian's docker-registry with its own port and folder.

    Its `address` is on 127.0.0.1, where Docker accepts plain HTTP; its port is one of those that
    every simulated host forwards, so that an image has the same name on all of them.
    """

    def __init__(self, username: str = "", password: str = "") -> None:
        self.username = username
        self.password = password
        self.folder = Path(tempfile.mkdtemp(prefix="trailer-test-registry-"))
        self.port = process.free_port(*SHARED_PORTS)
        self.address = f"{process.LOOPBACK}:{self.port}"
        self._process: process.Child | None = None

    @property
    def auth(self) -> dict[str, str] | None:
        """The credentials in the form docker-py takes; None for an open registry."""
        if not self.username:
            return None
        return {"username": self.username, "password": self.password}

    def start(self) -> Self:
        """Start the registry and wait until it listens; what was pushed before is still there."""
        settings: dict[str, object] = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {
                "filesystem": {"rootdirectory": str(self.folder / "data")},
                "delete": {"enabled": True},
            },
            "http": {"addr": f"0.0.0.0:{self.port}"},
        }
        if self.username:
            passwords = process.run("htpasswd", "-Bbn", self.username, self.password)
            (self.folder / "htpasswd").write_text(passwords)
            settings["auth"] = {
                "htpasswd": {"realm": "trailer-test", "path": str(self.folder / "htpasswd")}
            }
        # The settings file is YAML, of which JSON is a part.
        (self.folder / "settings.yml").write_text(json.dumps(settings))
        self._process = process.start(
            ["docker-registry", "serve", self.folder / "settings.yml"], self.folder / "log"
        )
        eventually(
            lambda: process.accepts_connections(self.port),
            20,
            f"the registry does not listen: {process.tail(self.folder / 'log')}",
        )
        return self

    def reference(self, name: str, tag: str = "1") -> str:
        """Return the reference of an image in this registry."""
        return f"{self.address}/{name}:{tag}"

    def move_tag(self, name: str, digest: str, tag: str = "1") -> None:
        """In the registry alone: a host that pushes under a name has the new image already, and
        what follows that name there is replaced."""
        manifests = f"http://{self.address}/v2/{name}/manifests"
        kind = "application/vnd.docker.distribution.manifest.v2+json"
        found = requests.get(f"{manifests}/{digest}", headers={"Accept": kind}, timeout=10)
        assert found.ok, found.text
        typed = {"Content-Type": kind}
        put = requests.put(f"{manifests}/{tag}", data=found.content, headers=typed, timeout=10)
        assert put.ok, put.text

    def stop(self) -> None:
        """Stop serving; the images stay for the next start."""
        if self._process is not None:
            process.stop(self._process)

    def destroy(self) -> None:
        """Stop serving and remove the folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
