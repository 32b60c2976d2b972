"""Trailer as it is deployed, as processes; see tests/ground/production_set.py."""

from tests.ground.server import RunningTrailer
from tests.ground.ways import Processes


class ProductionTrailer(RunningTrailer):
    """Always the processes of a deployment, on the given database and Redis."""

    def __init__(self, docker_host: str, *, database_url: str, redis_url: str) -> None:
        given = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        super().__init__(docker_host, given, way=Processes)
