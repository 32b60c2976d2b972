"""What every runtime must do, the in-memory one and the real one alike."""

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agent.engine_requests import (
    BuildRequest,
    CommitRequest,
    ContainerRequest,
    NetworkRequest,
    VolumeRequest,
)
from agent.errors import Conflict, EngineError, NotFound
from agent.observed import ObservedContainer
from agent.protocol.spec import MountSpec
from agent.runtime.port import EngineEvent, Look, Runtime
from tests.ground.wait import eventually

LABELS = {"trailer.host": "h", "trailer.workspace": "w"}
LOOK = Look(host_id="h")
DATA = MountSpec(target="/data", source="trailer-data", volume_id="v")


class RuntimeContract:
    """Subclassed with fixtures `runtime`, `image` (a present reference) and `command`."""

    @pytest.fixture
    def make(self, runtime: Runtime, image: str, command: tuple[str, ...]) -> Callable[..., str]:
        def make(name: str = "trailer-web", network: str = "", alias: str = "", **f: Any) -> str:
            given = {"image": image, "hostname": "web", "command": command, "labels": LABELS, **f}
            request = ContainerRequest(name=name, **given)
            return runtime.create_container(request, network_id=network, alias=alias)

        return make

    @staticmethod
    def see(runtime: Runtime, name: str = "trailer-web") -> ObservedContainer | None:
        observed = runtime.observe(LOOK)
        return next((c for c in observed.containers if c.name == name), None)

    def test_a_container_is_created_started_stopped_and_removed(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        container_id = make(nano_cpus=500_000_000, memory_bytes=64 * 2**20)
        seen = self.see(runtime)
        assert seen is not None
        assert (seen.id, seen.state, seen.inspected) == (container_id, "created", True)
        assert (seen.nano_cpus, seen.memory_bytes) == (500_000_000, 64 * 2**20)
        assert seen.labels["trailer.workspace"] == "w"
        runtime.start_container(container_id)
        assert runtime.inspect_container(container_id).state == "running"
        runtime.stop_container(container_id, timeout=2)
        assert runtime.inspect_container(container_id).state == "exited"
        runtime.remove_container(container_id, with_volumes=False)
        assert self.see(runtime) is None

    def test_doing_it_twice_is_no_error(self, runtime: Runtime, make: Callable[..., str]) -> None:
        container_id = make()
        for _ in range(2):
            runtime.start_container(container_id)
        runtime.unpause_container(container_id)
        for _ in range(2):
            runtime.stop_container(container_id, timeout=2)
        for _ in range(2):
            runtime.remove_container(container_id, with_volumes=False)
        assert self.see(runtime) is None

    def test_a_taken_name_is_a_conflict(self, runtime: Runtime, make: Callable[..., str]) -> None:
        make()
        with pytest.raises(Conflict):
            make()
        other = make("trailer-other")
        with pytest.raises(Conflict):
            runtime.rename_container(other, "trailer-web")

    def test_what_is_not_there_is_not_found(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        with pytest.raises(NotFound):
            make(image="trailer-test/nothing:1")
        for act in (runtime.start_container, runtime.inspect_container):
            with pytest.raises(NotFound):
                act("0" * 64)
        with pytest.raises(NotFound):
            runtime.inspect_image("trailer-test/nothing:1")
        runtime.remove_image("trailer-test/nothing:1")
        runtime.remove_volume("trailer-nothing")
        runtime.remove_network("0" * 64)

    def test_a_container_is_renamed_in_place(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        container_id = make()
        runtime.rename_container(container_id, "trailer-shop")
        seen = self.see(runtime, "trailer-shop")
        assert seen is not None
        assert seen.id == container_id

    def test_limits_are_changed_in_place(self, runtime: Runtime, make: Callable[..., str]) -> None:
        container_id = make(nano_cpus=500_000_000, memory_bytes=64 * 2**20)
        runtime.start_container(container_id)
        runtime.update_container(container_id, nano_cpus=250_000_000, memory_bytes=96 * 2**20)
        seen = runtime.inspect_container(container_id)
        assert (seen.nano_cpus, seen.memory_bytes) == (250_000_000, 96 * 2**20)

    def test_networks_are_joined_and_left_by_id(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        lan = runtime.create_network(NetworkRequest(name="trailer-lan", labels={"a": "b"}))
        dmz = runtime.create_network(NetworkRequest(name="trailer-dmz", internal=True))
        with pytest.raises(Conflict):
            runtime.create_network(NetworkRequest(name="trailer-lan"))
        container_id = make(network=lan, alias="web")
        for _ in range(2):
            runtime.connect_network(dmz, container_id, alias="web")
        created = self.places(runtime)
        assert set(created) == {lan, dmz}
        runtime.start_container(container_id)
        assert set(self.places(runtime)) == {lan, dmz}
        assert all("web" in aliases for aliases in self.places(runtime).values())
        with pytest.raises(EngineError):
            runtime.remove_network(lan)
        for _ in range(2):
            runtime.disconnect_network(dmz, container_id)
        assert set(self.places(runtime)) == {lan}
        runtime.remove_network(dmz)
        labels = {n.id: n.labels for n in runtime.observe(LOOK).networks}
        assert labels[lan]["a"] == "b"

    def places(self, runtime: Runtime) -> dict[str, tuple[str, ...]]:
        seen = self.see(runtime)
        assert seen is not None
        return {place.network_id: place.aliases for place in seen.attachments}

    def test_without_a_network_a_container_sits_on_the_default_bridge(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        runtime.start_container(make())
        seen = self.see(runtime)
        assert seen is not None
        assert [place.network_name for place in seen.attachments] == ["bridge"]

    def test_volumes_are_made_once_and_refuse_to_go_while_mounted(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        from_request = VolumeRequest(name="trailer-data", labels={"a": "b"})
        for _ in range(2):
            assert runtime.create_volume(from_request) == "trailer-data"
        (seen,) = [v for v in runtime.observe(LOOK).volumes if v.name == "trailer-data"]
        assert seen.labels["a"] == "b"
        container_id = make(mounts=(DATA,))
        with pytest.raises(Conflict):
            runtime.remove_volume("trailer-data")
        runtime.remove_container(container_id, with_volumes=True)
        runtime.remove_volume("trailer-data")
        assert [v for v in runtime.observe(LOOK).volumes if v.name == "trailer-data"] == []

    def test_an_image_in_use_cannot_be_removed(
        self, runtime: Runtime, make: Callable[..., str], image: str
    ) -> None:
        """One of its own: an image with a second name only loses the first, in use or not."""
        used = "trailer/used:latest"
        request = BuildRequest(ref=used, dockerfile=f"FROM {image}\nRUN echo used")
        assert not [out.error for out in runtime.build_image(request, None) if out.error]
        container_id = make(image=used)
        runtime.start_container(container_id)
        with pytest.raises(Conflict):
            runtime.remove_image(used)
        found = runtime.inspect_image(used)
        assert found.id in {i.id for i in runtime.observe(LOOK).images}
        runtime.stop_container(container_id, timeout=2)
        runtime.remove_container(container_id, with_volumes=False)
        runtime.remove_image(used)

    def test_a_build_makes_an_image(self, runtime: Runtime, image: str) -> None:
        request = BuildRequest(
            ref="trailer/built:latest",
            dockerfile=f"FROM {image}\nRUN echo from-the-build",
            labels={"trailer.image": "i"},
        )
        outputs = list(runtime.build_image(request, None))
        assert not [output.error for output in outputs if output.error]
        assert runtime.inspect_image("trailer/built:latest").id.startswith("sha256:")
        runtime.remove_image("trailer/built:latest")

    def test_a_commit_makes_an_image_and_the_container_runs_on(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        container_id = make(env={"TOKEN": "secret", "PLAIN": "1"})
        runtime.start_container(container_id)
        request = CommitRequest(
            container_id=container_id,
            ref="trailer/committed:latest",
            labels={"trailer.image": "i", "trailer.workspace": ""},
            blank_env=("TOKEN",),
        )
        runtime.commit_container(request)
        image = runtime.inspect_image("trailer/committed:latest")
        assert image.labels["trailer.image"] == "i"
        assert image.labels["trailer.workspace"] == ""
        assert runtime.inspect_container(container_id).state == "running"
        assert runtime.recalls_pause(container_id)
        runtime.tag_image("trailer/committed:latest", "trailer/other:latest")
        runtime.remove_image("trailer/committed:latest")
        assert runtime.inspect_image("trailer/other:latest").id == image.id
        runtime.remove_image("trailer/other:latest")
        with pytest.raises(NotFound):
            runtime.inspect_image("trailer/other:latest")

    def test_images_without_a_name_are_removed_by_their_labels(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        container_id = make()
        runtime.start_container(container_id)

        def commit(build: str) -> str:
            labels = {"trailer.image": "i", "trailer.build": build}
            ref = "trailer/committed:latest"
            runtime.commit_container(
                CommitRequest(container_id=container_id, ref=ref, labels=labels)
            )
            return runtime.inspect_image(ref).id

        # Each takes the name from the one before.
        first, second, third = commit("b1"), commit("b2"), commit("b3")
        for build in ("b1", "b3"):
            runtime.remove_unnamed_images({"trailer.image": "i", "trailer.build": build})
        left = {image.id for image in runtime.observe(LOOK).images}
        assert left & {first, second, third} == {second, third}
        for image_id in (second, third):
            runtime.remove_image(image_id)

    def test_a_container_that_was_never_paused_is_not_recalled(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        assert not runtime.recalls_pause(make())

    def test_a_failing_build_says_so_in_its_output(self, runtime: Runtime, image: str) -> None:
        request = BuildRequest(
            ref="trailer/broken:latest", dockerfile=f"FROM {image}\nRUN exit 3 # FAIL"
        )
        outputs = list(runtime.build_image(request, None))
        assert outputs[-1].error
        with pytest.raises(NotFound):
            runtime.inspect_image("trailer/broken:latest")

    def test_a_pull_of_nothing_ends_with_an_error(self, runtime: Runtime) -> None:
        def attempt() -> str:
            try:
                outputs = list(runtime.pull_image("127.0.0.1:9/nothing:1", None))
            except EngineError as problem:
                return str(problem)
            return outputs[-1].error

        assert attempt()

    def test_events_tell_of_starts_and_ends(
        self, runtime: Runtime, make: Callable[..., str]
    ) -> None:
        heard: queue.Queue[EngineEvent] = queue.Queue()
        stream = runtime.events()

        def listen() -> None:
            for event in stream:
                heard.put(event)

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        container_id = make()
        runtime.start_container(container_id)
        runtime.stop_container(container_id, timeout=2)
        runtime.remove_container(container_id, with_volumes=False)
        events: list[EngineEvent] = []

        def complete() -> bool:
            while not heard.empty():
                events.append(heard.get())
            actions = [e.action for e in events if e.container_id == container_id]
            return {"start", "die", "destroy"} <= set(actions)

        eventually(complete)
        assert {e.workspace_id for e in events if e.action == "start"} == {"w"}
        stream.close()
        thread.join(5)
        assert not thread.is_alive()

    def test_calls_are_counted(self, runtime: Runtime) -> None:
        before = runtime.calls
        runtime.observe(LOOK)
        assert runtime.calls > before
        calls = runtime.calls
        runtime.ping(deadline=5)
        assert runtime.calls == calls
        assert runtime.info().version
