"""PostgreSQL's image with the tables in it: deployments of tests start with a copy of them.

A new volume begins with what the image has in its place, and `prepare` then finds nothing to do,
which takes half a minute less of every start. `make deployed` begins with an empty one.
"""

import docker

from tests.ground.compose_images import POSTGRES, SERVER
from tests.ground.compose_project import WORDS
from tests.ground.wait import eventually

_NAME = "tables"
_OWNER = {"POSTGRES_USER": "trailer", "POSTGRES_DB": "trailer"}
_MIGRATE = ["python3", "manage.py", "migrate", "--skip-checks", "-v", "0"]


def put_tables_into_postgres(client: docker.DockerClient) -> None:
    """Run it with its data in the container itself, and keep the container as the image."""
    word = WORDS["POSTGRES_PASSWORD"]
    network = client.networks.create(_NAME)
    postgres = client.containers.run(
        POSTGRES,
        name=_NAME,
        network=_NAME,
        environment={**_OWNER, "POSTGRES_PASSWORD": word},
        detach=True,
    )
    ready = ["pg_isready", "-h", "127.0.0.1", "-U", "trailer"]
    eventually(lambda: postgres.exec_run(ready).exit_code == 0, 60, "PostgreSQL does not answer")
    url = f"postgres://trailer:{word}@{_NAME}:5432/trailer"
    client.containers.run(
        SERVER, _MIGRATE, network=_NAME, environment={"DATABASE_URL": url}, remove=True
    )
    postgres.stop(timeout=60)
    repository, _, tag = POSTGRES.partition(":")
    postgres.commit(repository, tag)
    postgres.remove()
    network.remove()
