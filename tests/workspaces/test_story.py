"""The story: rows of the ledger joined to entries, and their sentences. No database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from workspaces.story.join import explaining, story_of
from workspaces.story.rows import By, Entry, Row, Subject
from workspaces.story.sentences import summary_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW = Subject(revision=2, observed_revision=2, status="running")
MIB = 1024**2
MEMORY = {
    "field": "memory_bytes",
    "from": 64 * MIB,
    "to": 96 * MIB,
    "effect": "replace",
}


def row(kind: str, seconds: float = 0, **fields: Any) -> Row:
    at = NOON + timedelta(seconds=seconds)
    defaults: dict[str, Any] = {"at": at, "received_at": at, "cause": "", "revision": 2}
    number = UUID(int=round(seconds * 1000) + 1)
    return Row(id=number, kind=kind, **{**defaults, **fields})


def asked(kind: str, seconds: float = 0, **fields: Any) -> Row:
    return row(kind, seconds, **{"user": "admin", **fields})


def told(kind: str, seconds: float, **fields: Any) -> Row:
    return row(kind, seconds, **{"reported": True, "cycle": 7, "user": "admin", **fields})


def only(*rows: Row, subject: Subject = NOW) -> Entry:
    (entry,) = story_of(rows, subject)
    return entry


def test_what_was_asked_and_what_the_agent_did_are_one_entry() -> None:
    entry = only(
        asked("changed", changes=[MEMORY], cause="Changed: memory_bytes."),
        told("replace", 2.1, cause="changed: memory_bytes", changes=[MEMORY]),
    )
    assert (entry.kind, entry.outcome, entry.duration_ms) == ("changed", "done", 2100)
    assert entry.by == By("user", "admin")
    assert summary_of(entry) == (
        "admin changed memory from 64 MiB to 96 MiB; the container was replaced in 2.1 s."
    )


def test_without_the_right_to_inspect_fields_are_named_without_values() -> None:
    entry = only(asked("changed", changes=[MEMORY]), told("replace", 2.1, changes=[MEMORY]))
    assert summary_of(entry, inspects=False) == (
        "admin changed memory; the container was replaced in 2.1 s."
    )


@pytest.mark.parametrize(
    ("observed", "status", "outcome"),
    [
        (1, "running", "asked"),
        (2, "deploying", "asked"),
        (2, "running", "done"),
        (2, "stopped", "done"),
        (2, "error", "failed"),
    ],
)
def test_an_act_that_the_agent_wrote_nothing_about_goes_by_the_status(
    observed: int, status: str, outcome: str
) -> None:
    subject = Subject(revision=2, observed_revision=observed, status=status, message="it broke")
    assert only(asked("stop_requested"), subject=subject).outcome == outcome


def test_a_failed_act_says_why_and_is_done_once_a_further_try_works() -> None:
    act = asked("redeploy_requested", cause="Redeploy requested.")
    failed = told("error", 3, cause="port is already allocated\nmore")
    entry = only(act, failed)
    assert (entry.outcome, entry.duration_ms) == ("failed", 3000)
    assert summary_of(entry) == (
        "admin asked for a redeploy; this failed: port is already allocated."
    )
    again = only(act, failed, told("replace", 20, cycle=9))
    assert (again.outcome, again.problem) == ("done", "")


def test_an_act_that_a_later_one_overtook_is_done_with_it() -> None:
    first = asked("changed", changes=[MEMORY], revision=2)
    second = asked(
        "changed",
        1,
        revision=3,
        changes=[{"field": "cpus", "from": 1, "to": 2, "effect": "replace"}],
    )
    done = told("replace", 4, revision=3, changes=[MEMORY, *second.changes])
    newest, oldest = story_of((first, second, done), replace(NOW, revision=3, observed_revision=3))
    assert (newest.outcome, newest.duration_ms) == ("done", 3000)
    assert (oldest.outcome, oldest.duration_ms, oldest.together) == ("done", 4000, True)
    assert summary_of(oldest).endswith(
        "; the container was replaced together with a later change."
    )
    pending = story_of((first, second), replace(NOW, revision=3, observed_revision=1))
    assert [entry.outcome for entry in pending] == ["asked", "asked"]


def test_a_change_that_the_host_need_not_know_is_done_at_once() -> None:
    change = {"field": "description", "from": "", "to": "mine", "effect": "none"}
    later = told("replace", 9000, changes=[{"field": "image", "from": "a", "to": "b"}])
    entries = story_of((asked("changed", changes=[change]), later), NOW)
    assert [entry.outcome for entry in entries] == ["done", "done"]
    assert [entry.by for entry in entries] == [By("agent"), By("user", "admin")]


def test_what_the_agent_does_later_at_the_same_revision_is_an_entry_of_its_own() -> None:
    rows = (
        asked("changed", changes=[MEMORY]),
        told("replace", 2, changes=[MEMORY]),
        told("replace", 900, cycle=31, cause="changed: image", changes=[{"field": "image"}]),
    )
    newest, oldest = story_of(rows, NOW)
    assert (newest.kind, newest.by.type) == ("replace", "agent")
    assert summary_of(newest) == "The container was replaced: changed: image."
    assert oldest.parts == ("replace",)


def test_a_rename_and_the_networks_of_one_edit_are_one_entry() -> None:
    entry = only(
        asked(
            "changed", changes=[{"field": "name", "from": "a", "to": "b", "effect": "in_place"}]
        ),
        told("rename", 1),
        told("connect", 1.2),
        told("disconnect", 1.5),
    )
    assert entry.parts == ("rename", "connect", "disconnect")
    assert summary_of(entry) == (
        "admin changed name from a to b; the container was renamed in 1.5 s."
    )


def test_drift_is_the_engines_act_and_not_the_owners() -> None:
    entry = only(told("heal", 5, cause="container was removed outside Trailer"))
    assert (entry.by, entry.outcome, entry.is_drift) == (By("engine"), "done", True)
    assert summary_of(entry) == (
        "Drift: container was removed outside Trailer; Trailer put it right."
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"exit": {"code": 3, "signal": "", "oom": False}}, "The container crashed with code 3."),
        (
            {"exit": {"code": 3, "signal": "", "oom": False}, "count": 7},
            "The container crashed 7 times with code 3.",
        ),
        (
            {"exit": {"code": 137, "signal": "SIGKILL", "oom": True}},
            "The container crashed with code 137 (SIGKILL), out of memory.",
        ),
    ],
)
def test_a_crash_says_how_it_ended(fields: dict[str, Any], sentence: str) -> None:
    entry = only(told("crashed", 5, **fields))
    assert (entry.by.type, summary_of(entry)) == ("engine", sentence)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"exit": {"code": 0, "signal": "", "oom": False}},
            "The container ended by itself with code 0 and was restarted.",
        ),
        (
            {"count": 4, "cause": "why is not known"},
            "The container was restarted 4 times; why is not known.",
        ),
    ],
)
def test_a_restart_says_what_is_known(fields: dict[str, Any], sentence: str) -> None:
    assert summary_of(only(told("restarted", 5, **fields))) == sentence


@pytest.mark.parametrize(
    ("fields", "by", "sentence"),
    [
        (
            {"user": "", "name": "schedule", "cause": "Stopped because its schedule says so."},
            By("schedule", "schedule"),
            "The schedule stopped the workspace because its schedule says so; not done yet.",
        ),
        (
            {"user": "", "name": "idle", "cause": "Stopped because nobody used it."},
            By("schedule", "idle"),
            "The idle stop stopped the workspace because nobody used it; not done yet.",
        ),
    ],
)
def test_what_no_person_asked_for_names_what_did(
    fields: dict[str, Any], by: By, sentence: str
) -> None:
    entry = only(asked("stop_requested", **fields), subject=replace(NOW, observed_revision=1))
    assert (entry.by, summary_of(entry)) == (by, sentence)


def test_a_service_of_a_stack_is_changed_by_its_stack() -> None:
    entry = only(asked("changed", changes=[MEMORY]), subject=replace(NOW, stack="shop"))
    assert entry.by == By("stack", "shop")
    assert summary_of(entry) == "Stack shop changed memory from 64 MiB to 96 MiB."


def test_secrets_are_named_and_never_told() -> None:
    change = {"field": "secret_env", "from": {}, "to": {"PASSWORD": "•••"}, "effect": "replace"}
    entry = only(asked("changed", changes=[change]))
    assert summary_of(entry) == "admin changed secret environment (PASSWORD)."


def test_a_report_that_was_held_up_on_its_way_counts_by_the_agents_clock() -> None:
    late = told("replace", 2, received_at=NOON + timedelta(hours=1))
    assert only(asked("redeploy_requested"), late).duration_ms == 2000


def test_a_snapshot_ends_as_its_image_does() -> None:
    for status, outcome in (("building", "asked"), ("finished", "done"), ("failed", "failed")):
        subject = replace(NOW, snapshots=((NOON, status),))
        entry = only(asked("snapshot_requested", cause="Snapshot a requested."), subject=subject)
        assert entry.outcome == outcome


def test_the_entry_that_explains_the_status_is_the_newest_that_can_change_it() -> None:
    crash = told("crashed", 5, exit={"code": 3, "signal": "", "oom": False})
    entries = story_of(
        (asked("created", revision=1), crash, asked("transferred", 9, cause="Handed over.")), NOW
    )
    found = explaining(entries)
    assert found is not None
    assert found.row is crash
