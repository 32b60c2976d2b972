"""deploy/compose.yaml brought up by Docker Compose itself on a private engine."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.ground.compose_command import compose

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "compose.yaml"
# What this ground says of the file's own settings; what the file may leave open stays open.
WORDS = {"POSTGRES_PASSWORD": "postgres-word", "REDIS_PASSWORD": "redis-word"}
UP_TIMEOUT_S = 240


class ComposeProject:
    """A project by its name; its settings lie in `folder`, where any process finds them."""

    def __init__(self, name: str, engine_url: str, folder: Path) -> None:
        self.name = name
        self._engine_url = engine_url
        self._env_file = folder / "compose.env"
        self._changes = folder / "changes.yaml"

    def configure(self, settings: Mapping[str, str], changes: str) -> None:
        """Lines of deploy/.env, and a second file that Compose merges; the next `up` follows."""
        lines = [f"{key}={json.dumps(text)}" for key, text in (WORDS | dict(settings)).items()]
        self._env_file.write_text("\n".join(lines) + "\n")
        self._changes.write_text(changes)

    def up(self, *options: str) -> None:
        """Start what is not running; returns when everything was started in its order."""
        self.run(*options, "up", "--detach", "--no-build", "--pull", "never", "--quiet-pull")

    def run(self, *words: str) -> str:
        """Run one command of Compose; what it says when it fails is raised."""
        done = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(),
            timeout=UP_TIMEOUT_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"docker compose {' '.join(words)}: {done.stderr}\n{self.logs()}")
        return done.stdout

    def command(self, *words: str) -> list[str | Path]:
        files: list[str | Path] = ["-f", FILE, "-f", self._changes, "--env-file", self._env_file]
        return [compose(), "--ansi", "never", "-p", self.name, *files, *words]

    def environment(self) -> dict[str, str]:
        """Settings of whoever runs the tests must not reach the file."""
        named = ("TRAILER_", "DOCKER_", "COMPOSE_", "POSTGRES_", "REDIS_", "SECRET_KEY")
        outer = {name: text for name, text in os.environ.items() if not name.startswith(named)}
        return {**outer, "DOCKER_HOST": self._engine_url}

    def containers(self) -> dict[str, dict[str, Any]]:
        """By service: what `ps` shows, those that ended too."""
        listed = self.run("--profile", "*", "ps", "--all", "--format", "json").splitlines()
        return {row["Service"]: row for row in map(json.loads, listed)}

    def logs(self, lines: int = 30) -> str:
        """The end of what every container wrote, for the message of a failure."""
        words = ("logs", "--no-color", "--tail", str(lines))
        done = subprocess.run(
            self.command("--profile", "*", *words),
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(),
            timeout=60,
        )
        return done.stdout
