"""The machine that deployments in containers run on: one private engine for a whole test run."""

import atexit
from contextlib import closing
from functools import cache

from tests.ground.compose_images import ensure_compose_images
from tests.ground.compose_tables import put_tables_into_postgres
from tests.ground.engine import PrivateEngine
from tests.ground.hostnet import lead_gateway_to_loopback


@cache
def server_machine() -> PrivateEngine:
    """Not the engine that tests use as a host: those remove every container there."""
    engine = PrivateEngine()
    atexit.register(engine.destroy)
    engine.create()
    lead_gateway_to_loopback(engine.host)
    with closing(engine.client(timeout=300)) as client:
        ensure_compose_images(client)
        put_tables_into_postgres(client)
    return engine
