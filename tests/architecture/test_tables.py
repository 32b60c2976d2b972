"""Tables that must be total: each status has a badge, each job a task, each action a rule."""

from agent.protocol.state import HostSettings
from hosts.choices import HostStatus, ResourceStatus
from hosts.status import HOST_BADGES, RESOURCE_BADGES
from images.choices import BuildStatus
from images.status import BADGES as IMAGE_BADGES
from trailer.celery import app
from trailer.jobs import Job
from trailer.policy import RULES
from workspaces.choices import WorkspaceStatus
from workspaces.stacks.choices import StackStatus
from workspaces.stacks.status import BADGES as STACK_BADGES
from workspaces.status import BADGES as WORKSPACE_BADGES

COLOURS = {"green", "blue", "amber", "red", "grey"}


def test_every_status_has_a_badge_that_carries_its_own_value_and_label() -> None:
    tables = (
        (WorkspaceStatus, WORKSPACE_BADGES),
        (BuildStatus, IMAGE_BADGES),
        (HostStatus, HOST_BADGES),
        (ResourceStatus, RESOURCE_BADGES),
        (StackStatus, STACK_BADGES),
    )
    for statuses, badges in tables:
        assert set(statuses) == set(badges)
        for status, badge in badges.items():
            assert (badge.value, badge.label) == (status.value, status.label)
            assert badge.colour in COLOURS


def test_every_job_is_a_registered_task_and_every_schedule_names_a_job() -> None:
    app.loader.import_default_modules()
    assert {job.value for job in Job} <= set(app.tasks)
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert scheduled <= {job.value for job in Job}


def test_every_rule_has_a_view_rule_beside_it() -> None:
    nouns = {action.split(".")[0] for action in RULES}
    assert {noun for noun in nouns if f"{noun}.view" not in RULES} == set()


def test_default_settings_on_the_wire_are_those_of_the_contract() -> None:
    settings = HostSettings()
    assert (settings.reconcile_interval, settings.heartbeat_interval) == (10, 15)
