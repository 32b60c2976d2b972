"""The preview and the saved change are one computation: random edits show no difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import make_image, make_network, make_volume
from tests.workspaces.scene import observe
from trailer.errors import Invalid
from workspaces.fields import fields_of
from workspaces.models import Event, Revision
from workspaces.selectors import workspace_get
from workspaces.services import Plan, workspace_plan, workspace_update
from workspaces.services.change import change_prepare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.workspaces.scene import Scene
    from workspaces.models import Workspace

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
ENV = st.dictionaries(st.sampled_from("ABC"), TEXT, max_size=3)
SECRETS = st.dictionaries(st.sampled_from("XYZ"), TEXT, max_size=3)


def edits(scene: Scene) -> st.SearchStrategy[dict[str, Any]]:
    """Partial bodies that are mostly valid, drawn from few values so that repeats are common."""
    images = [scene.image, make_image(scene.host, scene.owner, reference="alpine:3")]
    volumes = [scene.volume, make_volume(scene.host, scene.owner)]
    networks = [scene.network, make_network(scene.host, scene.owner)]
    fields: Mapping[str, st.SearchStrategy[Any]] = {
        "name": st.sampled_from(["box", "bix"]),
        "description": TEXT,
        "image": st.sampled_from([str(image.pk) for image in images]),
        "desired_state": st.sampled_from(["running", "stopped"]),
        "shared_volumes": st.booleans(),
        "command": st.lists(TEXT, max_size=2),
        "env": ENV,
        "secret_env": SECRETS,
        "cpus": st.sampled_from([None, 1, 1.0, 0.5]),
        "memory_bytes": st.sampled_from([None, 2**26, 2**27]),
        "gpus": st.sampled_from([None, {}, {"count": 0}]),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"container_port": st.sampled_from([80, 81])},
                optional={"host_port": st.sampled_from([None, 8080, 8081])},
            ),
            max_size=2,
        ),
        "mounts": st.lists(
            st.fixed_dictionaries(
                {
                    "volume": st.sampled_from([str(volume.pk) for volume in volumes]),
                    "target": st.sampled_from(["/a", "/b/", "/b"]),
                }
            ),
            max_size=2,
        ),
        "networks": st.lists(st.sampled_from([str(network.pk) for network in networks])),
        "health_check": st.sampled_from(
            [None, {"test": ["CMD", "true"]}, {"test": ["CMD", "true"], "retries": 3}]
        ),
        "startup_timeout": st.sampled_from([60, 61]),
        "schedule": st.sampled_from([None, {}, {"start": "* * * * *"}]),
        "labels": ENV,
    }
    return st.fixed_dictionaries({}, optional=fields)


def planned(scene: Scene, workspace: Workspace, data: dict[str, Any]) -> Plan | Invalid:
    try:
        return workspace_plan(actor=scene.owner, workspace=workspace, data=data)
    except Invalid as refusal:
        return refusal


def apply_and_compare(scene: Scene, workspace: Workspace, data: dict[str, Any]) -> None:
    before = workspace_get(workspace.pk)
    plan = planned(scene, workspace, data)
    if isinstance(plan, Invalid):
        with pytest.raises(Invalid) as caught:
            workspace_update(actor=scene.owner, workspace=workspace, data=data)
        assert caught.value.fields == plan.fields
        return
    after = workspace_update(actor=scene.owner, workspace=workspace, data=data)
    if not plan.changes:
        assert plan.action == "none"
        assert after.revision == before.revision
        assert fields_of(after) == fields_of(before)
        return
    assert after.revision == before.revision + 1
    event = Event.objects.get(workspace=workspace, revision=after.revision)
    assert event.changes == msgspec.json.decode(msgspec.json.encode(plan.changes))
    assert Revision.objects.filter(workspace=workspace, revision=after.revision).exists()
    # What was saved is what was asked for: asking again is no change.
    repeat = change_prepare(actor=scene.owner, workspace=after, fields=fields_of(after))
    assert repeat.changes == ()
    again = workspace_plan(actor=scene.owner, workspace=workspace, data=data)
    assert (again.action, again.changes) == ("none", ())


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_the_plan_is_what_the_update_then_does(scene: Scene, data: st.DataObject) -> None:
    Event.objects.all().delete()
    workspace = workspace_get_or_create(scene)
    bodies = edits(scene)
    for seq in range(1, 4):
        apply_and_compare(scene, workspace, data.draw(bodies))
        if data.draw(st.booleans()):
            current = workspace_get(workspace.pk)
            observe(current, current.desired_state, epoch=current.report_epoch + 1, seq=seq)


def workspace_get_or_create(scene: Scene) -> Workspace:
    """A fresh one for each example: the database is shared by all of them."""
    scene.owner.workspaces.all().delete()
    return scene.create(env={"A": "1"}, secret_env={"X": "1"})
