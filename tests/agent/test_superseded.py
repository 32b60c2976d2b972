"""What a newer pull replaced: it goes by order, when nobody has a use or a name for it."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agent.observed import ObservedContainer
from agent.plan import Plan
from agent.protocol.state import DesiredBuild, DesiredImage, HostState
from agent.runtime.fake import FakeRuntime
from tests.agent.bench import Bench
from tests.agent.documents import document, image, tombstone, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import eventually

REF = "reg.example:5000/team/app:2"
REPOSITORY = "reg.example:5000/team/app"
OLD, NEW = "sha256:old", "sha256:new"
REMOVAL = "superseded by a newer pull; at most 1000 bytes are freed"


def app(**fields: Any) -> DesiredImage:
    return image("app", **{"ref": REF, "keep": (NEW,), **fields})


def wanted(*images: DesiredImage, **lists: Any) -> HostState:
    return document(images=images or (app(),), **lists)


def moved(bench: Bench) -> None:
    """This agent pulled the old one, and then the new one under the same name."""
    for image_id in (OLD, NEW):
        bench.runtime.registry[REF] = image_id
        bench.runtime.pull_image(REF, None)
        bench.journal.pulled(image_id, "i-app")


def is_finished(server: FakeServer, build_id: str) -> bool:
    build = server.build(build_id)
    return build is not None and build.status == "finished"


def removals(plan: Plan) -> list[str]:
    return [n.step.detail() for n in plan.nodes if n.step.verb == "remove_superseded"]


def test_what_a_newer_pull_replaced_goes_and_says_what_it_frees(bench: Bench) -> None:
    moved(bench)
    expected = f"1. remove_superseded 'app' ({OLD}): {REMOVAL} {{cleanup}}"
    assert bench.plan(wanted()).render() == expected
    bench.cycle(wanted())
    assert OLD not in bench.runtime.images
    assert bench.journal.view().pulled == {NEW: "i-app"}
    assert bench.plan(wanted()).nodes == ()


@pytest.mark.parametrize(
    "images",
    [
        pytest.param((app(keep=None),), id="a server that gives no such orders"),
        pytest.param((app(keep=(OLD,)),), id="the server has not heard of the newer one"),
        pytest.param((), id="the image vanished from the document"),
        pytest.param(
            (app(), image("pinned", ref=f"{REPOSITORY}@sha256:digest")), id="pinned elsewhere"
        ),
        pytest.param(
            (app(), image("built", kind="build", dockerfile=f"FROM {REPOSITORY}@sha256:digest")),
            id="a base by its digest",
        ),
    ],
)
def test_it_stays_without_an_order_or_with_another_reference(
    bench: Bench, images: tuple[DesiredImage, ...]
) -> None:
    moved(bench)
    digests = (f"{REPOSITORY}@sha256:digest",)
    bench.runtime.images[OLD] = replace(bench.runtime.images[OLD], digests=digests)
    assert removals(bench.plan(document(images=images))) == []


def test_it_stays_while_a_container_a_workspace_or_a_name_needs_it(bench: Bench) -> None:
    moved(bench)
    stranger = ObservedContainer(id="c1", name="by-hand", state="exited", image_id=OLD)
    bench.runtime.containers["c1"] = stranger
    assert removals(bench.plan(wanted())) == []
    bench.runtime.containers.clear()
    stopped = workspace(
        image_ref=REF, image_id="i-app", image_engine_id=OLD, desired_state="stopped"
    )
    assert removals(bench.plan(wanted(workspaces=(stopped,)))) == []
    assert removals(bench.plan(wanted(), busy=frozenset({"image:i-app"}))) == []
    assert removals(bench.plan(wanted(), hold_removals="An older backup was restored.")) == []
    bench.runtime.tag_image(OLD, "by-hand:1")
    assert removals(bench.plan(wanted())) == []
    bench.runtime.tag_image(NEW, "by-hand:1")
    other = (f"{REPOSITORY}@sha256:a", "elsewhere/app@sha256:a")
    bench.runtime.images[OLD] = replace(bench.runtime.images[OLD], digests=other)
    assert removals(bench.plan(wanted())) == []


def test_what_this_agent_did_not_pull_stays(bench: Bench) -> None:
    for image_id in (OLD, NEW):
        bench.runtime.registry[REF] = image_id
        bench.runtime.pull_image(REF, None)
    bench.journal.pulled(NEW, "i-app")
    assert bench.plan(wanted()).nodes == ()


def test_the_order_to_remove_the_image_is_one_for_its_older_ones_too(bench: Bench) -> None:
    moved(bench)
    bench.journal.image_made("i-app")
    gone = document(images=(), tombstones=(tombstone("image", "i-app", REF),))
    bench.cycle(gone)
    assert not {OLD, NEW} & bench.runtime.images.keys()


def test_a_name_given_since_the_look_keeps_it(bench: Bench) -> None:
    moved(bench)
    (node,) = bench.plan(wanted()).nodes
    bench.runtime.tag_image(OLD, "by-hand:1")
    bench.perform(node.step)
    assert bench.runtime.images[OLD].tags == ("by-hand:1",)


def test_one_that_the_engine_will_not_give_is_asked_for_once_per_pull(bench: Bench) -> None:
    """An image that was built from it: the engine knows of that, and no look tells."""
    moved(bench)
    bench.runtime.bases.add(OLD)
    assert removals(bench.cycle(wanted())) == [OLD]
    assert bench.plan(wanted()).nodes == ()
    bench.runtime.bases.clear()
    bench.journal.pulled("sha256:newest", "i-app")
    assert removals(bench.plan(wanted())) == [OLD]


def test_each_update_leaves_one_image_on_the_host(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    def desire(number: int, engine_id: str, *, done: bool) -> None:
        build = DesiredBuild(id=f"b-{number}", number=number, done=done, force=True)
        kept = app(build=build, update_policy="always", keep=(engine_id,) if engine_id else ())
        used = workspace(
            image_ref=REF, image_id="i-app", image_engine_id=engine_id, revision=number
        )
        fake_server.desire(images=(kept,), workspaces=(used,))

    held = ""
    for number, engine_id in enumerate((OLD, NEW, "sha256:newest"), start=1):
        runtime.registry[REF] = engine_id
        desire(number, held, done=False)
        if number == 1:
            agent = launch()
        eventually(partial(is_finished, fake_server, f"b-{number}"))
        desire(number, engine_id, done=True)
        reaches(fake_server, "running", revision=number)
        held = engine_id
    eventually(
        lambda: {i for i in runtime.images if i in {OLD, NEW, held}} == {held},
        10,
        f"still there: {list(runtime.images)}",
    )
    eventually(lambda: agent.supervisor.parts.journal.view().pulled == {held: "i-app"})

    def told() -> bool:
        steps = [s for c in fake_server.cycles() for s in c.steps if s.step == "remove_superseded"]
        return [(s.cause, s.outcome) for s in steps] == [(REMOVAL, "ok")] * 2

    eventually(told, 10, "the cycles do not say what was freed")
    assert runtime.named("trailer-web").image_id == held  # type: ignore[union-attr]
