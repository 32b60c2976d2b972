"""Trailer as it is deployed, as processes; see tests/ground/production_set.py."""

import sys

from tests.ground import process
from tests.ground.server import PRODUCTION, ROOT, RunningTrailer


class ProductionTrailer(RunningTrailer):
    """Always the processes of a deployment, on the given database and Redis."""

    def __init__(self, docker_host: str, *, database_url: str, redis_url: str) -> None:
        super().__init__(docker_host, {"DATABASE_URL": database_url, "REDIS_URL": redis_url})
        self.command = PRODUCTION

    def manage(self, *words: str) -> None:
        """Run a management command to its good end."""
        command = [sys.executable, "manage.py", *words]
        child = process.start(command, self.folder / "log", env=self.environment(), cwd=ROOT)
        if child.wait(120) != 0:
            raise RuntimeError(f"{words[0]} failed:\n{self.log()}")
