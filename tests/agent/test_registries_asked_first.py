"""Wherever the engine would go to a registry for a member, the agent asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.engine_requests import BuildRequest
from agent.fetch.registry import RegistryGate
from agent.protocol.registries import RegistryRule, rule_for, rule_of
from agent.protocol.report import BuildStatus, ImageObserved, RegistryTested
from agent.protocol.state import (
    DesiredRegistryTest,
    HostSettings,
    RegistryCredential,
)
from agent.steps import BuildImage
from agent.work.images import ImageWork
from tests.agent.documents import document, image, workspace
from tests.agent.fake_fetch import FakeFetcher
from tests.agent.running import Launch, reaches
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer

INSIDE = "127.0.0.1:5000"
REF = f"{INSIDE}/team/app:2"
REFUSAL = (
    f"The registry {INSIDE} is not an address of the internet. "
    "An administrator can list it in TRAILER_REGISTRY_ALLOW, or store the registry."
)


@pytest.fixture
def judging(fake_server: FakeServer) -> FakeServer:
    fake_server.settings = msgspec.structs.replace(
        fake_server.settings, registry_allow=(), update_interval=3600.0
    )
    return fake_server


def pull(**fields: Any) -> Any:
    return image("app", ref=REF, done=False, **fields)


def ended(server: FakeServer) -> BuildStatus:
    def found() -> BuildStatus | None:
        items = [item for item in server.all(BuildStatus) if item.build_id == "b-app"]
        return next((i for i in items if i.status in {"failed", "finished"}), None)

    seen = eventually(found, 10, "the pull never ended")
    assert seen is not None
    return seen


def test_a_pull_from_inside_is_refused_and_the_engine_not_asked(
    judging: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.registry[REF] = "sha256:one"
    judging.desire(images=(pull(),))
    launch()
    result = ended(judging)
    assert (result.status, result.message) == ("failed", REFUSAL)
    assert runtime.asked == []
    assert "sha256:one" not in runtime.images


@pytest.mark.parametrize(
    ("document_fields", "image_fields", "settings"),
    [
        ({}, {"trusted_source": True}, {"registry_allow": ()}),
        ({"trusted_registries": (INSIDE,)}, {}, {"registry_allow": ()}),
        ({}, {}, {"registry_allow": (INSIDE,)}),
        # A server of an earlier version.
        ({}, {}, {"registry_allow": None}),
    ],
)
def test_what_an_administrator_chose_is_pulled_as_before(
    document_fields: dict[str, Any],
    image_fields: dict[str, Any],
    settings: dict[str, Any],
    fake_server: FakeServer,
    runtime: FakeRuntime,
    launch: Launch,
) -> None:
    runtime.registry[REF] = "sha256:one"
    fake_server.settings = msgspec.structs.replace(fake_server.settings, **settings)
    fake_server.desire(images=(pull(**image_fields),), **document_fields)
    launch()
    assert ended(fake_server).status == "finished"


def test_an_image_that_is_there_runs_on_and_is_not_judged(
    judging: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.add_image(REF)
    judging.desire(images=(image("app", ref=REF),), workspaces=(web(),))
    launch()
    reaches(judging, "running")
    assert runtime.asked == []
    assert REFUSAL not in str(judging.book.items)


def test_an_image_that_will_do_as_it_is_asks_no_registry(
    judging: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.add_image(REF)
    judging.desire(images=(pull(),))
    launch()
    assert ended(judging).status == "finished"
    assert runtime.asked == []


def web() -> Any:
    return workspace(image_ref=REF, image_id="i-app")


def test_a_comparison_that_is_refused_is_shown_and_changes_nothing(
    judging: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.registry[REF] = "sha256:one"
    list(runtime.pull_image(REF, None))
    runtime.asked.clear()
    judging.desire(images=(image("app", ref=REF, update_policy="always"),), workspaces=(web(),))
    launch()

    def shown() -> ImageObserved | None:
        return next((i for i in judging.all(ImageObserved) if REFUSAL in i.message), None)

    seen = eventually(shown, 10, "the refusal is not shown")
    assert seen is not None
    assert (seen.present, seen.available_digest) == (True, "")
    assert seen.message == f"{REF} stays as it is. {REFUSAL}"
    assert runtime.asked == []
    reaches(judging, "running")


def test_a_credential_is_not_tried_inside(
    judging: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    credential = RegistryCredential(server=INSIDE, username="robot", password="s3cret")
    judging.desire(registry_tests=(DesiredRegistryTest(id="t-1", credential=credential),))
    launch()
    told = eventually(lambda: judging.all(RegistryTested), 10, "never told")
    assert told
    assert [(item.accepted, item.message) for item in told] == [(False, REFUSAL)]
    assert runtime.asked == []


def built(runtime: FakeRuntime, **fields: Any) -> BuildStatus:
    step = BuildImage(
        key="image:i-app",
        name="app",
        cause="test",
        image_id="i-app",
        build_id="b-app",
        registries=RegistryRule(),
        **fields,
    )
    work = ImageWork(
        step,
        runtime,
        timeout=5,
        write=lambda _: None,
        on_progress=lambda _: None,
        registries=RegistryGate(FakeFetcher()),
    )
    result = work.run()
    assert result is not None
    return result


def test_a_base_from_inside_is_not_fetched(runtime: FakeRuntime) -> None:
    runtime.registry[REF] = "sha256:one"
    request = BuildRequest(ref="trailer/x", dockerfile=f"FROM {REF}", pull_base=True)
    result = built(runtime, request=request)
    assert result.status == "failed"
    assert result.message == f"The base image {REF} was not fetched. {REFUSAL}"
    assert runtime.asked == []


def test_nothing_is_built_that_would_be_pushed_inside(runtime: FakeRuntime) -> None:
    request = BuildRequest(ref="trailer/x", dockerfile="FROM scratch")
    result = built(runtime, request=request, push_to=REF)
    assert (result.status, result.message) == ("failed", REFUSAL)
    assert runtime.registry == {}


def test_the_rule_is_read_from_settings_document_and_image() -> None:
    settings = HostSettings(registry_allow=("10.0.0.0/8",))
    state = document(settings=settings, trusted_registries=("localhost:5000",))
    wanted = RegistryRule(allow=("10.0.0.0/8",), trusted=("localhost:5000",))
    assert rule_of(state) == rule_for(state, image()) == wanted
    assert rule_for(state, image(trusted_source=True)) is None
    assert rule_of(document()) is None


def test_a_pull_that_was_cancelled_while_its_registry_was_asked_is_cancelled(
    judging: FakeServer, runtime: FakeRuntime
) -> None:
    fetcher = FakeFetcher()
    step = BuildImage(
        key="image:i-app",
        name="app",
        cause="test",
        image_id="i-app",
        build_id="b-app",
        request=BuildRequest(ref="trailer/x", dockerfile="FROM scratch"),
        push_to="reg.example/app:1",
        registries=RegistryRule(),
    )
    work = ImageWork(
        step,
        runtime,
        timeout=5,
        write=lambda _: None,
        on_progress=lambda _: None,
        registries=RegistryGate(fetcher),
    )
    fetcher.on_open = lambda: work.cancel("cancel requested")
    result = work.run()
    assert result is not None
    assert (result.status, result.message) == ("cancelled", "Cancelled: cancel requested.")
