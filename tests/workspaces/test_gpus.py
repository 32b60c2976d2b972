"""The GPU ledger: who gets which card, who is refused, and what stopping does to a hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.session import Gpu, Heartbeat
from hosts.models import Host
from tests.factories import make_host, make_image
from tests.workspaces.scene import URL, Scene, observe
from trailer.errors import Invalid
from workspaces.control.compile import host_state
from workspaces.gpus import Card, GpuWish, Held, choose
from workspaces.models import GpuHold, Workspace
from workspaces.presence import host_heard
from workspaces.services import (
    workspace_clone,
    workspace_redeploy,
    workspace_start,
    workspace_stop,
    workspace_update,
)
from workspaces.spec import workspace_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.django_db
CARDS = [Card(id="GPU-a", index=0, name="A100"), Card(id="GPU-b", index=1, name="A100")]
TWO = [{"id": card.id, "name": card.name, "index": card.index} for card in CARDS]


def chosen(wish: GpuWish, held: Sequence[Held] = (), before: Sequence[str] = ()) -> Any:
    return choose(wish, CARDS, held, host_name="local", before=before)


def refusal(wish: GpuWish, *held: Held) -> str:
    with pytest.raises(Invalid) as caught:
        chosen(wish, held)
    return caught.value.message


@pytest.mark.parametrize(
    ("wish", "held", "before", "got"),
    [
        (GpuWish(count=1), (), (), ("GPU-a",)),
        (GpuWish(count=2), (), (), ("GPU-a", "GPU-b")),
        (GpuWish(count=1), (Held(gpu="GPU-a", workspace="x"),), (), ("GPU-b",)),
        (GpuWish(count=1), (), ("GPU-b",), ("GPU-b",)),
        (GpuWish(device_ids=("1",)), (), (), ("GPU-b",)),
        (GpuWish(device_ids=("GPU-b", "1")), (), (), ("GPU-b",)),
        (
            GpuWish(device_ids=("0",), shared=True),
            (Held(gpu="GPU-a", workspace="x", shared=True),),
            (),
            ("GPU-a",),
        ),
    ],
)
def test_free_cards_are_given_those_it_had_first(
    wish: GpuWish, held: tuple[Held, ...], before: tuple[str, ...], got: tuple[str, ...]
) -> None:
    assert chosen(wish, held, before) == got


def test_a_refusal_names_the_holder_and_the_card() -> None:
    first = Held(gpu="GPU-a", workspace="first")
    assert refusal(GpuWish(device_ids=("0",)), first) == (
        "GPU 0 (A100, GPU-a) of the host local is held by the workspace first. "
        "Stop that first, or ask for another one."
    )
    assert "1 of 2 GPUs free: GPU 0 (A100, GPU-a) is held by the workspace first" in refusal(
        GpuWish(count=2), first
    )
    assert "fewer than 3" in refusal(GpuWish(count=3))
    assert "no GPU 7" in refusal(GpuWish(device_ids=("7",)))
    # Who shares meets one who does not.
    assert "first" in refusal(GpuWish(device_ids=("0",), shared=True), first)
    generous = Held(gpu="GPU-a", workspace="first", shared=True)
    assert "first" in refusal(GpuWish(device_ids=("0",)), generous)


@pytest.fixture
def scene(scene: Scene) -> Scene:
    Host.objects.filter(pk=scene.host.pk).update(gpus=TWO)
    return scene


def cards(workspace: Workspace) -> tuple[str, ...]:
    fresh = Workspace.objects.get(pk=workspace.pk)
    gpus = workspace_spec(fresh).gpus
    return gpus.device_ids if gpus else ()


def test_each_workspace_gets_a_card_of_its_own_and_the_third_hears_who_has_them(
    scene: Scene,
) -> None:
    one = scene.create(name="one", gpus={"count": 1})
    two = scene.create(name="two", gpus={"count": 1})
    assert (cards(one), cards(two)) == (("GPU-a",), ("GPU-b",))
    answer = scene.client().post(URL, scene.body(name="three", gpus={"count": 1}))
    assert answer.status_code == 400
    sentence = answer.json()["fields"]["gpus.count"][0]
    assert "the workspace one" in sentence
    assert "the workspace two" in sentence
    assert not Workspace.objects.filter(name="three").exists()


def test_a_stopped_workspace_gives_its_card_up_once_its_container_has_ended(scene: Scene) -> None:
    first = scene.create(name="first", gpus={"device_ids": ["0"]})
    observe(first, "running")
    workspace_stop(actor=scene.owner, workspace=first)
    with pytest.raises(Invalid, match="first"):
        scene.create(name="second", gpus={"device_ids": ["0"]})
    observe(Workspace.objects.get(pk=first.pk), "stopped", seq=2)
    second = scene.create(name="second", gpus={"device_ids": ["0"]})
    with pytest.raises(Invalid, match="held by the workspace second"):
        workspace_start(actor=scene.owner, workspace=first)
    workspace_stop(actor=scene.owner, workspace=second)
    workspace_start(actor=scene.owner, workspace=first)
    assert cards(first) == ("GPU-a",)


def test_a_stopped_workspace_may_wish_for_a_card_in_use_but_for_none_that_is_not_there(
    scene: Scene,
) -> None:
    scene.create(name="first", gpus={"device_ids": ["0"]})
    second = scene.create(name="second", gpus={"device_ids": ["0"]}, desired_state="stopped")
    assert not second.gpu_holds.exists()
    with pytest.raises(Invalid, match="has no GPU GPU-z"):
        scene.create(name="third", gpus={"device_ids": ["GPU-z"]}, desired_state="stopped")


def test_a_start_takes_the_card_it_had_or_else_another_one_and_tells_the_difference(
    scene: Scene,
) -> None:
    first = scene.create(name="first", gpus={"count": 1})
    workspace_stop(actor=scene.owner, workspace=first)
    assert cards(first) == ("GPU-a",)
    scene.create(name="second", gpus={"device_ids": ["GPU-a"]})
    workspace_start(actor=scene.owner, workspace=first)
    assert cards(first) == ("GPU-b",)
    changes = first.events.latest("received_at").changes
    assert [change["field"] for change in changes] == ["gpus", "desired_state"]


def test_a_lost_card_blocks_no_other_edit_and_a_redeploy_takes_another(scene: Scene) -> None:
    first = scene.create(name="first", gpus={"count": 1})
    Host.objects.filter(pk=scene.host.pk).update(gpus=TWO[1:])
    first = workspace_update(actor=scene.owner, workspace=first, data={"env": {"A": "1"}})
    assert cards(first) == ("GPU-a",)
    workspace_redeploy(actor=scene.owner, workspace=first)
    assert cards(first) == ("GPU-b",)


def test_asking_otherwise_for_the_same_card_replaces_nothing(scene: Scene) -> None:
    first = scene.create(name="first", gpus={"count": 1})
    first = workspace_update(
        actor=scene.owner, workspace=first, data={"gpus": {"device_ids": ["GPU-a"]}}
    )
    assert first.gpus == {"device_ids": ["GPU-a"]}
    (change,) = first.events.latest("received_at").changes
    assert (change["field"], change["effect"]) == ("gpus", "none")
    workspace_update(actor=scene.owner, workspace=first, data={"gpus": None})
    assert not GpuHold.objects.exists()


def test_a_clone_takes_other_cards_and_a_deleted_workspace_gives_them_back(scene: Scene) -> None:
    first = scene.create(name="first", gpus={"device_ids": ["0"]})
    second = workspace_clone(actor=scene.owner, workspace=first, data={"name": "second"})
    assert cards(second) == ("GPU-b",)
    first.delete()
    assert cards(scene.create(name="third", gpus={"device_ids": ["0"]})) == ("GPU-a",)


def heartbeat(host: Host, *gpus: str) -> None:
    inventory = tuple(Gpu(id=gpu, name="A100", index=n) for n, gpu in enumerate(gpus))
    host_heard(host, Heartbeat(epoch=1, agent_version="1", gpus=inventory, engine=None))


def test_a_host_that_was_never_heard_settles_its_cards_with_the_first_heartbeat(
    scene: Scene,
) -> None:
    host = make_host("late", online=False)
    image = make_image(host, scene.owner)
    where = {"host": str(host.pk), "image": str(image.pk), "gpus": {"count": 1}}
    first, second = scene.create(name="first", **where), scene.create(name="second", **where)
    Host.objects.filter(pk=host.pk).update(gpus=TWO[:1])
    heartbeat(host, "GPU-a")
    assert (cards(first), cards(second)) == (("GPU-a",), ())
    told = {w.spec.name: w for w in host_state(Host.objects.get(pk=host.pk)).workspaces}
    assert told["first"].blocked == ""
    assert "held by the workspace first" in told["second"].blocked
    workspace_stop(actor=scene.owner, workspace=first)
    heartbeat(host, "GPU-a")
    assert cards(second) == ("GPU-a",)
