"""The update watch: when it looks, what it says, and what it never does."""

from typing import Any

import msgspec
import pytest

from agent.loop.digests import is_watched
from agent.protocol.report import ImageObserved
from agent.protocol.state import DesiredBuild, DesiredImage
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import always, eventually

REF = "reg.example:5000/team/app:2"


def app(**fields: Any) -> DesiredImage:
    return image("app", ref=REF, **{"update_policy": "always", **fields})


def watch(server: FakeServer, *, interval: float = 3600.0, **fields: Any) -> None:
    server.settings = msgspec.structs.replace(server.settings, update_interval=interval)
    server.desire(images=(app(**fields),))


def reports(server: FakeServer) -> list[ImageObserved]:
    return [item for item in server.all(ImageObserved) if item.image_id == "i-app"]


def pulled(runtime: FakeRuntime, image_id: str = "sha256:one") -> None:
    """The image is on the host as its registry has it."""
    runtime.registry[REF] = image_id
    list(runtime.pull_image(REF, None))
    runtime.mutations.clear()


def told(server: FakeServer, **fields: Any) -> ImageObserved:
    def found() -> ImageObserved | None:
        known = reports(server)
        right = known and all(getattr(known[-1], k) == v for k, v in fields.items())
        return known[-1] if right else None

    seen = eventually(found, 10, f"never told {fields}: {reports(server)}")
    assert seen is not None
    return seen


@pytest.mark.parametrize(
    "fields",
    [
        {"update_policy": "if_missing"},
        {"kind": "build"},
        {"enabled": False},
        {"ref": "reg.example/app@sha256:" + "0" * 64},
        {"build": DesiredBuild(id="b", number=2)},
    ],
)
def test_what_does_not_follow_its_registry_is_never_looked_at(fields: dict[str, Any]) -> None:
    assert is_watched(app())
    assert not is_watched(image("app", **{"update_policy": "always", "ref": REF, **fields}))


def test_if_missing_never_asks_the_registry(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime)
    watch(fake_server, interval=1, update_policy="if_missing", check=5)
    launch()
    told(fake_server, present=True)
    always(lambda: runtime.asked == [], 1.5, "asked although nobody wished it")


def test_the_same_digest_is_told_once_and_then_idle_is_silent(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime)
    digest = runtime.registry_digest(REF, None)
    runtime.asked.clear()
    watch(fake_server)
    launch()
    seen = told(fake_server, available_digest=digest, digest=digest, present=True)
    assert seen.engine_id == "sha256:one"
    assert runtime.asked == [REF]
    calls, count = runtime.calls, len(reports(fake_server))
    always(lambda: runtime.calls == calls, 1, "an engine call with nothing due")
    assert len(reports(fake_server)) == count


def test_a_new_digest_is_told_and_a_look_is_repeated_on_the_timer(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime)
    watch(fake_server, interval=1)
    launch()
    first = told(fake_server, present=True, message="")
    runtime.registry[REF] = "sha256:two"
    newer = runtime.registry_digest(REF, None)
    seen = told(fake_server, available_digest=newer)
    assert seen.digest != newer
    assert seen.engine_id == first.engine_id == "sha256:one"
    assert "pull_image" not in runtime.mutations
    # While it differs it is said after every look: the server may be waiting for the registry.
    count = len(reports(fake_server))
    eventually(lambda: len(reports(fake_server)) >= count + 2, 10)


def test_a_wish_is_a_look_at_once(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime)
    watch(fake_server, check=1)
    launch()
    eventually(lambda: runtime.asked == [REF], 10)
    always(lambda: runtime.asked == [REF], 0.7, "a second look for one wish")
    runtime.registry[REF] = "sha256:two"
    watch(fake_server, check=2)
    eventually(lambda: runtime.asked == [REF, REF], 3)
    told(fake_server, available_digest=runtime.registry_digest(REF, None))


def test_a_failed_look_changes_nothing_and_stays_told_until_a_good_one(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime)
    fake_server.desire(images=(app(),), workspaces=(workspace(image_ref=REF, image_id="i-app"),))
    agent = launch()
    reaches(fake_server, "running")
    told(fake_server, available_digest=runtime.registry_digest(REF, None))
    del runtime.registry[REF]
    fake_server.desire(
        images=(app(check=1),), workspaces=(workspace(image_ref=REF, image_id="i-app"),)
    )
    sentence = f"{REF} could not be compared with its registry: manifest unknown: {REF}"
    seen = told(fake_server, message=sentence)
    assert (seen.present, seen.engine_id, seen.available_digest) == (True, "sha256:one", "")
    count = len(reports(fake_server))
    agent.supervisor.parts.wake.request("test", full=True)
    always(lambda: len(reports(fake_server)) == count, 0.7, "a cycle told something else")
    assert fake_server.status_word("w-web") == "running"
    runtime.registry[REF] = "sha256:one"
    watch(fake_server, check=2)
    told(fake_server, message="", available_digest=runtime.registry_digest(REF, None))


def test_a_missing_image_is_told_with_what_the_registry_has(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.registry[REF] = "sha256:one"
    watch(fake_server)
    launch()
    digest = runtime.registry_digest(REF, None)
    told(fake_server, present=False, available_digest=digest)


def test_a_slow_registry_holds_nothing_back(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime)
    runtime.registry_answers.clear()
    watch(fake_server)
    launch()
    eventually(lambda: runtime.asked == [REF], 10)
    fake_server.desire(images=(app(), image()), workspaces=(workspace(),))
    reaches(fake_server, "running")
    runtime.registry_answers.set()
    told(fake_server, message="", present=True, digest=runtime.registry_digest(REF, None))


def test_a_tag_that_another_image_moved_is_compared_with_the_own_digest(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    pulled(runtime, "sha256:own")
    own = runtime.images["sha256:own"]
    pulled(runtime, "sha256:moved")
    watch(fake_server, keep=("sha256:own",))
    launch()
    found = told(fake_server, available_digest=runtime.registry_digest(REF, None))
    assert found.engine_id == "sha256:own"
    assert found.digest == own.digests[0].rpartition("@")[2] != found.available_digest
