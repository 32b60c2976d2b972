"""The environment that the server accepts, in a real container: it runs and starts programs."""

import docker

from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from workspaces.validation.start_size import MOST_START_BYTES


def test_the_largest_environment_that_is_accepted_can_be_started_with(
    engine_client: docker.DockerClient,
) -> None:
    env = {f"V{number}": "x" * (MOST_START_BYTES // 16 - 20) for number in range(16)}
    container = engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, detach=True, environment=env
    )
    code, output = container.exec_run(["sh", "-c", "env | wc -c"])
    assert isinstance(output, bytes)
    assert (code, int(output) > MOST_START_BYTES - 1000) == (0, True)
