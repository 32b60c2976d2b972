"""Pushing what was built: to its own server only, without leaving another name on the host."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.engine_requests import BuildRequest, Credential
from agent.fetch.registry import RegistryGate
from agent.protocol import naming
from agent.protocol.state import DesiredBuild, RegistryCredential
from agent.runtime.fake import FakeRuntime
from agent.steps import BuildImage
from agent.work.images import ImageWork
from tests.agent.bench import Bench
from tests.agent.documents import document
from tests.agent.fake_fetch import FakeFetcher
from tests.agent.test_limits import BUILT, build

TARGET = "reg.example:5000/team/app:1"


def push_work(
    runtime: FakeRuntime, write: Callable[[str], None], **credential: str
) -> tuple[ImageWork, BuildImage]:
    step = BuildImage(
        key="image:i-app",
        name="app",
        cause="test",
        image_id="i-app",
        build_id="b-app",
        request=BuildRequest(ref=BUILT, dockerfile="FROM x"),
        push_to=TARGET,
        push_credential=Credential(server="reg.example:5000", password="p", **credential),
    )
    work = ImageWork(
        step,
        runtime,
        timeout=5,
        write=write,
        on_progress=lambda _: None,
        registries=RegistryGate(FakeFetcher()),
    )
    return work, step


def test_a_built_image_is_pushed_and_only_its_own_name_stays(runtime: FakeRuntime) -> None:
    lines: list[str] = []
    work, _ = push_work(runtime, lines.append, username="alice")
    result = work.run()
    assert result is not None
    assert result.status == "finished"
    assert runtime.registry[TARGET] == result.engine_id
    assert result.digest == runtime.registry_digest(TARGET, None)
    assert runtime.images[result.engine_id].tags == (BUILT,)
    assert "pushed\n" in lines


def test_a_failed_push_is_a_failed_build_and_the_image_stays(runtime: FakeRuntime) -> None:
    work, _ = push_work(runtime, lambda _: None, username="nobody")
    result = work.run()
    assert result is not None
    assert result.status == "failed"
    assert result.message == (
        f"The image was built, but it could not be pushed to {TARGET}: "
        "unauthorized: authentication required"
    )
    assert runtime.inspect_image(BUILT).tags == (BUILT,)


def test_a_name_that_was_there_before_the_push_means_the_same_afterwards(
    runtime: FakeRuntime,
) -> None:
    runtime.add_image(TARGET, image_id="sha256:pulled-earlier")
    work, _ = push_work(runtime, lambda _: None, username="alice")
    result = work.run()
    assert result is not None
    assert result.status == "finished"
    assert runtime.inspect_image(TARGET).id == "sha256:pulled-earlier"


def test_a_name_that_a_killed_push_left_goes_with_the_next_one(runtime: FakeRuntime) -> None:
    labels = {naming.LABEL_IMAGE: "i-app"}
    runtime.add_image(TARGET, image_id="sha256:pushed-halfway", labels=labels)
    work, step = push_work(runtime, lambda _: None, username="alice")
    work.step = replace(step, resumed=True)
    result = work.run()
    assert result is not None
    assert result.status == "finished"
    assert not any(TARGET in found.tags for found in runtime.images.values())


@pytest.mark.parametrize("end", ["cancelled", "deleted"])
def test_the_name_of_a_killed_push_goes_when_nobody_takes_the_build_up_again(
    bench: Bench, end: str
) -> None:
    bench.journal.build_started("b-app", "i-app")
    bench.journal.steps_begun("i-app", push_to=TARGET)
    labels = {naming.LABEL_IMAGE: "i-app"}
    bench.runtime.add_image(BUILT, image_id="sha256:built", labels=labels)
    bench.runtime.tag_image(BUILT, TARGET)
    wanted = build(
        reference=TARGET, push=True, build=DesiredBuild(id="b-app", number=1, done=True)
    )
    bench.cycle(document(images=(wanted,) if end == "cancelled" else ()))
    assert bench.runtime.inspect_image(BUILT).tags == (BUILT,)
    assert bench.journal.view().loose_steps == {}


def test_a_name_that_means_something_else_stays(bench: Bench) -> None:
    bench.journal.steps_begun("i-app", push_to=TARGET)
    bench.runtime.add_image(TARGET, image_id="sha256:by-hand")
    bench.cycle(document(images=()))
    assert bench.runtime.inspect_image(TARGET).id == "sha256:by-hand"
    assert bench.journal.view().loose_steps == {}


def test_a_push_is_planned_with_the_password_of_its_own_server_only(bench: Bench) -> None:
    def planned(server: str, *, push: bool = True) -> BuildImage:
        credential = RegistryCredential(server=server, username="u", password="p")
        wanted = build(reference=TARGET, push=push, credential=credential)
        step = bench.plan(document(images=(wanted,))).nodes[0].step
        assert isinstance(step, BuildImage)
        return step

    assert planned("reg.example:5000").push_to == TARGET
    assert planned("reg.example:5000").push_credential is not None
    assert planned("reg.example").push_credential is None
    assert planned("reg.example:5000", push=False).push_to == ""
