"""A host with one workspace to take snapshots of, and what can be seen of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.protocol import naming
from agent.protocol.report import BuildStatus, WorkspaceStatus
from agent.protocol.state import DesiredBuild
from tests.engine.agent_inside import AgentInside
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import docker
    from docker.models.containers import Container

    from tests.engine.desired_host import DesiredHost


class SnapshotScene:
    def __init__(
        self,
        host: DesiredHost,
        docker_host: str,
        client: docker.DockerClient,
        state_dir: Path,
    ) -> None:
        self.host = host
        self.client = client
        self._clear()
        self.agent = AgentInside(host, docker_host, state_dir).start()

    def close(self) -> None:
        self.agent.stop()
        self.host.close()
        self._clear()

    def _clear(self) -> None:
        for found in self.client.api.containers(all=True):
            self.client.api.remove_container(found["Id"], force=True)
        for ref in self.snapshot_images():
            self.client.api.remove_image(ref, force=True)

    def running_workspace(self, **fields: Any) -> Container:
        self.host.workspace("web", **fields)
        self.agent.settle()
        return self.client.containers.get("trailer-web")

    def snapshot(self, *, number: int = 1, **fields: Any) -> None:
        build = DesiredBuild(id=f"b-snap-{number}", number=number, **fields)
        snapshot(self.host, build)

    def cancel(self, *, number: int = 1) -> None:
        self.snapshot(number=number, cancel=True)

    @staticmethod
    def write(container: Container, *, megabytes: int) -> None:
        command = f"dd if=/dev/urandom of=/big bs=1M count={megabytes}"
        code, output = container.exec_run(["sh", "-c", command])
        assert code == 0, output

    def is_paused(self, container: Container) -> bool:
        return bool(self.client.api.inspect_container(str(container.id))["State"]["Paused"])

    def snapshot_images(self) -> list[str]:
        """Whatever is labelled as this snapshot, tagged or not."""
        found = self.client.api.images(filters={"label": f"{naming.LABEL_IMAGE}=i-snap"})
        return [str(image["Id"]) for image in found]


def snapshot(host: DesiredHost, build: DesiredBuild, *, workspace_id: str = "w-web") -> None:
    host.image(
        "snap",
        ref=naming.build_ref("i-snap"),
        kind="snapshot",
        reference="",
        source_workspace_id=workspace_id,
        build=build,
    )


def images_with(client: docker.DockerClient, text: str) -> list[str]:
    """Ids of the images, named or not, whose record or history holds this text."""
    api: Any = client.api
    found = [str(image["Id"]) for image in api.images(all=True)]
    return [one for one in found if text in f"{api.inspect_image(one)}{api.history(one)}"]


def wait_for_end(
    host: DesiredHost, name: str, status: str, *, number: int = 1, timeout: float = 40
) -> BuildStatus:
    build_id = f"b-{name}-{number}"

    def ended() -> BuildStatus | None:
        build = host.server.build(build_id)
        return build if build and build.status in {"finished", "failed", "cancelled"} else None

    result = eventually(ended, timeout, f"{build_id} does not end: {host.server.build(build_id)}")
    assert result is not None
    assert result.status == status, result
    return result


def history_of(host: DesiredHost, name: str) -> list[str]:
    """Every status that was told about a workspace, without repetitions."""
    words: list[str] = []

    def collect() -> bool:
        told = [s for s in host.server.all(WorkspaceStatus) if s.workspace_id == f"w-{name}"]
        words[:] = [s.status for s in told]
        return bool(words) and words[-1] != "snapshotting"

    eventually(collect, 5, "it stays snapshotting")
    return [word for i, word in enumerate(words) if i == 0 or words[i - 1] != word]
