"""Small parts of the agent: configuration, backoff, wake-ups, settings."""

from pathlib import Path

import pytest

from agent.apply.failures import Failures
from agent.clock import Backoff
from agent.config import read_config
from agent.errors import ConfigError, EngineUnavailable
from agent.loop.target import Target, clamped
from agent.loop.wake import Wake
from agent.protocol.state import HostSettings
from agent.runtime.docker import DockerRuntime
from agent.store.database import Database
from tests.agent.documents import document, workspace


def test_configuration_fails_with_the_name_of_the_variable(tmp_path: Path) -> None:
    good = {
        "TRAILER_SERVER_URL": "http://s",
        "TRAILER_AGENT_STATE_DIR": str(tmp_path),
        "DOCKER_HOST": "unix:///x",
        "HOME": "/root",
    }
    config = read_config(good)
    assert config.engine_environment == {"DOCKER_HOST": "unix:///x"}
    for name, value in (
        ("TRAILER_SERVER_URL", "s"),
        ("TRAILER_AGENT_STATE_DIR", ""),
        ("TRAILER_AGENT_ENGINE_WORKERS", "many"),
    ):
        with pytest.raises(ConfigError, match=name):
            read_config({**good, name: value})
    assert "secret" not in repr(read_config({**good, "TRAILER_ENROLMENT_TOKEN": "secret"}))


def test_a_failed_object_waits_longer_each_time_until_it_changes() -> None:
    failures = Failures()
    failures.record("w", "no", revision=1)
    first = failures.next_due()
    failures.record("w", "no", revision=1)
    second = failures.next_due()
    assert first is not None
    assert second is not None
    assert 9 < first <= 10
    assert 19 < second <= 20
    assert failures.held({"w": 1}) == {"w": "no"}
    assert failures.held({"w": 2}) == {}
    assert failures.next_due() is None


def test_a_success_or_a_returning_engine_ends_the_wait() -> None:
    failures = Failures()
    both = {"a": 1, "b": 1}
    failures.record("a", "no", revision=1)
    failures.record("b", "no", revision=1)
    failures.clear("a")
    assert set(failures.held(both)) == {"b"}
    failures.engine_is_back()
    assert failures.held(both) == {}


def test_the_deletion_of_a_failed_object_waits_for_nothing_until_it_fails_itself() -> None:
    failures = Failures()
    for _ in range(5):
        failures.record("w", "no", revision=3)
    assert failures.held({"other": 1}) == {}
    # What is not in the document is removed under revision 0.
    failures.record("w", "still busy", revision=0)
    assert failures.held({"other": 1}) == {"w": "still busy"}


def test_an_excused_failure_waits_without_a_word_until_it_comes_again() -> None:
    failures = Failures()
    failures.record("w", "no answer", revision=1, excused=True)
    assert failures.held({"w": 1}) == {"w": ""}
    failures.record("w", "no answer", revision=1, excused=True)
    assert failures.held({"w": 1}) == {"w": "no answer"}


def test_backoff_grows_is_jittered_and_bounded() -> None:
    backoff = Backoff(first=1.0, limit=8.0)
    delays = [backoff.next_delay() for _ in range(50)]
    assert all(0 < delay <= 8 for delay in delays)
    assert len({round(delay, 3) for delay in delays}) > 25
    backoff.reset()
    assert backoff.next_delay() <= 1


def test_many_reasons_make_one_look() -> None:
    wake = Wake()
    wake.request("state")
    wake.changed("c1", "event")
    wake.changed("c2", "event")
    reasons = wake.wait(1.0)
    assert reasons.names == ("state", "event")
    assert reasons.changed_ids == {"c1", "c2"}
    assert wake.wait(0.01).names == ()


def test_a_note_is_seen_by_the_next_look_but_does_not_ask_for_one() -> None:
    wake = Wake()
    wake.note("c1")
    assert wake.is_quiet()
    reasons = wake.wait(0.01)
    assert reasons.names == ()
    assert reasons.changed_ids == {"c1"}


def test_strangers_wait_a_little_but_are_not_forgotten() -> None:
    wake = Wake()
    wake.request_within("event", 0.05)
    assert wake.is_quiet()
    assert wake.wait(5.0).names == ("event",)


def test_settings_are_clamped() -> None:
    wild = clamped(HostSettings(reconcile_interval=-1, heartbeat_interval=1e9, build_timeout=0))
    assert (wild.reconcile_interval, wild.heartbeat_interval) == (1.0, 3600.0)
    assert wild.build_timeout == 1.0


def test_a_document_from_the_past_holds_removals_until_it_is_confirmed(tmp_path: Path) -> None:
    target = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    new, old = document(version=7), document(version=5)
    target.settled(new)
    assert target.hold_removals(new) == ""
    assert "from version 7 to 5" in target.hold_removals(old)
    assert not target.brake_is_released(old)
    confirmed = document(version=5, state_epoch=2)
    assert target.hold_removals(confirmed) == ""
    assert target.brake_is_released(confirmed)
    target.settled(confirmed)
    assert not target.brake_is_released(confirmed)


def test_the_same_backup_restored_and_confirmed_twice_is_followed_twice(tmp_path: Path) -> None:
    target = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    target.settled(document(version=90))
    restored = document(version=5, restored=True)
    for epoch in (1_800_000_000, 1_800_000_060):
        assert target.hold_removals(restored)
        assert not target.brake_is_released(restored)
        confirmed = document(version=6, state_epoch=epoch)
        assert target.hold_removals(confirmed) == ""
        assert target.brake_is_released(confirmed)
        target.settled(confirmed)


def test_a_restored_state_is_held_although_its_epoch_is_new_here(tmp_path: Path) -> None:
    """Confirmed once while the agent was away, then backed up and restored."""
    target = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    target.settled(document(version=7))
    assert not target.brake_is_released(document(state_epoch=2, restored=True))


def test_a_state_before_a_confirmed_one_is_held_without_a_word_of_the_server(
    tmp_path: Path,
) -> None:
    target = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    target.settled(document(version=7, state_epoch=3))
    assert "confirm it on the server" in target.hold_removals(document(version=9, state_epoch=2))


def test_no_maintenance_is_known_before_the_server_has_told(tmp_path: Path) -> None:
    target = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    assert target.maintenance() is None
    target.apply_settings(HostSettings(maintenance=4))
    assert target.maintenance() == 4
    target.accept(document(settings=HostSettings(maintenance=5)), etag="")
    again = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    assert again.maintenance() == 5


def test_newer_settings_of_a_heartbeat_stand_over_the_document(tmp_path: Path) -> None:
    target = Target(tmp_path, Database(tmp_path / "agent.sqlite3"))
    target.accept(document(workspaces=(workspace(),)), etag="e")
    assert target.apply_settings(HostSettings(enabled=False))
    assert not target.apply_settings(HostSettings(enabled=False))
    state = target.state()
    assert state is not None
    assert state.settings.enabled is False
    assert Target(tmp_path, Database(tmp_path / "agent.sqlite3")).state() is not None


def test_an_engine_that_was_never_there_is_away_and_no_fault(tmp_path: Path) -> None:
    runtime = DockerRuntime({"DOCKER_HOST": f"unix://{tmp_path}/nothing.sock"})
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        runtime.events()
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        runtime.info()
