"""What a change does: action, downtime and the status shown meanwhile, as tables."""

from __future__ import annotations

from itertools import product

import pytest

from agent.protocol.compare import IN_PLACE, NONE, REPLACE
from agent.protocol.report import FieldChange
from agent.protocol.spec import HealthCheckSpec, MountSpec, PortSpec, WorkspaceSpec
from workspaces.changes import decide_action, decide_downtime, decide_pending_status
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace
from workspaces.status import workspace_status

RUNNING, STOPPED = "running", "stopped"


def change(effect: str) -> tuple[FieldChange, ...]:
    return (FieldChange(field="x", effect=effect),)


@pytest.mark.parametrize(
    ("old", "new", "effect", "has_container", "action"),
    [
        (RUNNING, RUNNING, NONE, True, "none"),
        (RUNNING, RUNNING, NONE, False, "none"),
        (RUNNING, RUNNING, IN_PLACE, True, "in_place"),
        (RUNNING, RUNNING, IN_PLACE, False, "create"),
        (RUNNING, RUNNING, REPLACE, True, "replace"),
        (RUNNING, RUNNING, REPLACE, False, "create"),
        (STOPPED, RUNNING, IN_PLACE, True, "start"),
        (STOPPED, RUNNING, IN_PLACE, False, "create"),
        (STOPPED, RUNNING, REPLACE, True, "replace"),
        (STOPPED, RUNNING, REPLACE, False, "create"),
        (RUNNING, STOPPED, IN_PLACE, True, "stop"),
        (RUNNING, STOPPED, IN_PLACE, False, "stop"),
        (RUNNING, STOPPED, REPLACE, True, "stop"),
        (STOPPED, STOPPED, NONE, True, "none"),
        (STOPPED, STOPPED, IN_PLACE, True, "none"),
        (STOPPED, STOPPED, IN_PLACE, False, "none"),
        (STOPPED, STOPPED, REPLACE, True, "none"),
        (STOPPED, STOPPED, REPLACE, False, "none"),
    ],
)
def test_the_action_follows_from_states_effect_and_container(
    old: str, new: str, effect: str, has_container: bool, action: str
) -> None:
    assert (
        decide_action(change(effect), old_state=old, new_state=new, has_container=has_container)
        == action
    )


CHECKED = HealthCheckSpec(test=("CMD", "true"))
PLAIN = WorkspaceSpec(name="a", image_ref="b")
HEALTHY = WorkspaceSpec(name="a", image_ref="b", health_check=CHECKED)
WRITTEN = MountSpec(target="/data", source="trailer-data", volume_id="v")
READ = MountSpec(target="/data", source="trailer-data", volume_id="v", read_only=True)
# NONE switches the image's own health check off: nobody would ever call it healthy.
UNCHECKED = WorkspaceSpec(name="a", image_ref="b", health_check=HealthCheckSpec(test=("NONE",)))
FIXED_PORT = WorkspaceSpec(
    name="a",
    image_ref="b",
    health_check=CHECKED,
    ports=(PortSpec(container_port=80, host_port=80),),
)


@pytest.mark.parametrize(
    ("action", "spec", "downtime"),
    [
        ("replace", PLAIN, "brief"),
        ("replace", HEALTHY, "none"),
        ("replace", FIXED_PORT, "brief"),
        ("replace", UNCHECKED, "brief"),
        ("in_place", PLAIN, "none"),
        ("create", PLAIN, "none"),
        ("start", PLAIN, "none"),
        ("stop", PLAIN, "brief"),
        ("none", PLAIN, "none"),
    ],
)
def test_downtime_is_told_before_it_happens(
    action: str, spec: WorkspaceSpec, downtime: str
) -> None:
    told, reason = decide_downtime(action, specs=(spec, spec))
    assert told == downtime
    assert bool(reason) == (action == "replace" and downtime == "brief")


@pytest.mark.parametrize(
    ("before", "after", "shared", "downtime"),
    [
        ((), (), False, "none"),
        ((READ,), (READ,), False, "none"),
        ((WRITTEN,), (WRITTEN,), False, "brief"),
        ((WRITTEN,), (), False, "brief"),
        ((), (WRITTEN,), False, "brief"),
        ((READ,), (WRITTEN,), False, "brief"),
        ((WRITTEN,), (WRITTEN,), True, "none"),
    ],
)
def test_what_writes_to_a_volume_is_replaced_with_downtime_unless_it_can_share(
    before: tuple[MountSpec, ...], after: tuple[MountSpec, ...], shared: bool, downtime: str
) -> None:
    old, new = (
        WorkspaceSpec(name="a", image_ref="b", health_check=CHECKED, mounts=mounts)
        for mounts in (before, after)
    )
    told, reason = decide_downtime("replace", specs=(old, new), shared_volumes=shared)
    assert told == downtime
    assert ("/data" in reason) == (downtime == "brief")


def test_a_stopped_workspace_has_nothing_to_interrupt() -> None:
    assert decide_downtime("replace", specs=(PLAIN, PLAIN), was_running=False) == ("none", "")


ACTIONS = ("none", "in_place", "create", "replace", "start", "stop")


@pytest.mark.parametrize(
    ("action", "pending", "seen"),
    list(product(ACTIONS, ("", "deployment_pending", "stopping"), (True, False))),
)
def test_a_small_change_keeps_an_unseen_status_and_a_large_one_sets_its_own(
    action: str, pending: str, seen: bool
) -> None:
    row = Workspace(revision=3, observed_revision=3 if seen else 2, pending_status=pending)
    shown = decide_pending_status(row, action)
    if action == "stop":
        assert shown == "stopping"
    elif action in ("create", "replace", "start"):
        assert shown == "deployment_pending"
    else:
        assert shown == ("" if seen else pending)


@pytest.mark.parametrize(
    ("observed", "pending", "seen"),
    list(product(WorkspaceStatus.values, ["", *WorkspaceStatus.values], (True, False))),
)
def test_what_the_user_did_counts_until_the_agent_has_seen_it(
    observed: str, pending: str, seen: bool
) -> None:
    row = Workspace(
        revision=2,
        observed_revision=2 if seen else 1,
        pending_status=pending,
        observed_status=observed,
    )
    expected = observed if seen or not pending else pending
    assert workspace_status(row) == expected
