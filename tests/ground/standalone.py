"""Trailer in one process, whatever way the test run has chosen for other tests."""

from tests.ground.server import RunningTrailer
from tests.ground.ways import Standalone


class StandaloneTrailer(RunningTrailer):
    """Always `manage.py standalone`, on the given database and without an agent of its own."""

    def __init__(self, docker_host: str, *, database_url: str) -> None:
        given = {"DATABASE_URL": database_url, "TRAILER_EMBEDDED_AGENT": "0"}
        super().__init__(docker_host, given, way=Standalone)
