"""Journal, outbox, identity and document: what survives the agent, and in which order."""

import stat
from pathlib import Path

import msgspec
import pytest

from agent.errors import ConfigError, RejectedDocument
from agent.protocol.report import BuildStatus, CycleReport, WorkspaceEvent, WorkspaceStatus
from agent.protocol.state import encode_state
from agent.store.database import Database
from agent.store.document import load_document, read_document, save_document
from agent.store.identity import Identity, identity_path, load_identity, save_identity
from agent.store.journal import Journal
from agent.store.outbox import Outbox
from tests.agent.documents import document, workspace
from tests.agent.fake_server import HOST_ID


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "agent.sqlite3")


@pytest.fixture
def outbox(database: Database) -> Outbox:
    return Outbox(database)


def status(word: str, *, workspace_id: str = "w") -> WorkspaceStatus:
    return WorkspaceStatus(seq=0, workspace_id=workspace_id, revision=1, status=word)


def event(kind: str) -> WorkspaceEvent:
    return WorkspaceEvent(seq=0, workspace_id="w", event=kind, cause="because", at="now")


def build(word: str, progress: int | None = None) -> BuildStatus:
    return BuildStatus(seq=0, image_id="i", build_id="b", status=word, progress=progress)


def cycle(number: int) -> CycleReport:
    return CycleReport(
        seq=0,
        number=number,
        trigger="test",
        started_at="",
        finished_at="",
        outcome="ok",
        cleanup="done",
        engine_calls=0,
    )


def words(outbox: Outbox) -> list[str]:
    return [getattr(item, "status", getattr(item, "event", "")) for item in outbox.take(100)]


def test_only_the_latest_status_of_an_object_is_kept(outbox: Outbox) -> None:
    for word in ("deploying", "starting", "running"):
        outbox.put(status(word))
    outbox.put(status("stopped", workspace_id="other"))
    assert words(outbox) == ["running", "stopped"]


def test_ledger_rows_are_each_kept(outbox: Outbox) -> None:
    for kind in ("create", "stop", "start"):
        outbox.put(event(kind))
    assert words(outbox) == ["create", "stop", "start"]


def test_a_build_result_replaces_its_progress_and_is_never_replaced(outbox: Outbox) -> None:
    outbox.put(build("building", 10))
    outbox.put(build("building", 20))
    outbox.put(build("failed"))
    outbox.put(build("finished"))
    assert words(outbox) == ["failed", "finished"]


def test_the_same_status_is_told_once_per_session(outbox: Outbox) -> None:
    assert outbox.put(status("running"))
    outbox.accept([item.seq for item in outbox.take(10)])
    assert not outbox.put(status("running"))
    assert outbox.is_empty()
    outbox.forget_reported()
    assert outbox.put(status("running"))


def test_sequence_numbers_only_rise_even_over_a_restart(tmp_path: Path) -> None:
    first = Outbox(Database(tmp_path / "agent.sqlite3"))
    first.put(event("create"))
    (item,) = first.take(1)
    first.accept([item.seq])
    second = Outbox(Database(tmp_path / "agent.sqlite3"))
    second.put(event("stop"))
    assert second.take(1)[0].seq > item.seq


def test_accepting_an_old_status_keeps_the_newer_one(outbox: Outbox) -> None:
    outbox.put(status("deploying"))
    (sent,) = outbox.take(1)
    outbox.put(status("running"))
    outbox.accept([sent.seq])
    assert words(outbox) == ["running"]


def test_cycle_reports_are_bounded_while_the_server_is_away(outbox: Outbox) -> None:
    outbox.put(event("create"))
    for number in range(250):
        outbox.put(cycle(number))
    kept = outbox.take(1000)
    assert len(kept) == 201
    assert isinstance(kept[0], WorkspaceEvent)
    assert isinstance(kept[-1], CycleReport)
    assert kept[-1].number == 249


def test_an_interrupted_intent_is_found_after_a_crash(database: Database, tmp_path: Path) -> None:
    journal = Journal(database)
    done = journal.intend(key="workspace:w", verb="create_container", name="web")
    journal.settle(done)
    journal.intend(key="workspace:w", verb="start_container", name="web")
    after_crash = Journal(Database(tmp_path / "agent.sqlite3"))
    (left,) = after_crash.unfinished()
    assert (left.verb, left.key, left.name) == ("start_container", "workspace:w", "web")
    after_crash.settle(left.id)
    assert after_crash.unfinished() == []


def test_the_journal_forgets_what_is_gone_but_not_what_is_missed(database: Database) -> None:
    journal = Journal(database)
    journal.own("c1", kind="workspace", object_id="wanted")
    journal.own("c2", kind="workspace", object_id="unwanted")
    known, wanted = journal.view().owned_ids, frozenset({"wanted"})
    journal.forget_absent("workspace", frozenset(), wanted=wanted, known=known)
    assert journal.view().containers == {"wanted": "c1"}
    journal.own("c3", kind="workspace", object_id="wanted")
    known = journal.view().owned_ids
    journal.forget_absent("workspace", frozenset({"c3"}), wanted=wanted, known=known)
    assert journal.view().owned_ids == {"c3"}


def test_a_stop_of_our_own_is_remembered_until_the_start(database: Database) -> None:
    journal = Journal(database)
    journal.own("c1", kind="workspace", object_id="w")
    journal.mark_stopped("c1", stopped=True)
    assert journal.view().stopped_ids == {"c1"}
    journal.mark_stopped("c1", stopped=False)
    assert journal.view().stopped_ids == frozenset()


def test_a_build_result_can_be_told_again(database: Database) -> None:
    journal = Journal(database)
    journal.build_started("b", "i")
    assert journal.build_result("b") is None
    journal.build_ended(build("finished"))
    assert journal.build_result("b") == build("finished")
    assert journal.view().builds["b"].status == "finished"


def test_old_records_of_builds_are_forgotten_but_not_what_is_wanted_or_open(
    database: Database,
) -> None:
    journal = Journal(database)
    journal.build_started("open", "i")
    for name in ("wanted", *(f"old-{number}" for number in range(5)), "new"):
        journal.build_ended(BuildStatus(seq=0, image_id="i", build_id=name, status="finished"))
    journal.forget_builds(wanted=frozenset({"wanted"}), most=2)
    assert journal.view().builds.keys() == {"open", "wanted", "old-4", "new"}
    journal.forget_builds(wanted=frozenset({"wanted"}), most=2)
    assert journal.build_result("new") is not None


def test_the_identity_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    assert load_identity(tmp_path) is None
    save_identity(tmp_path, Identity(token="t", host_id="h", host_key="k"))
    assert stat.S_IMODE(identity_path(tmp_path).stat().st_mode) == 0o600
    known = load_identity(tmp_path)
    assert known is not None
    assert (known.token, known.host_id, known.host_key) == ("t", "h", "k")


def test_a_broken_identity_is_a_sentence_not_a_trace(tmp_path: Path) -> None:
    identity_path(tmp_path).write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_identity(tmp_path)


def test_the_last_good_document_survives(tmp_path: Path) -> None:
    assert load_document(tmp_path) is None
    save_document(tmp_path, document(workspaces=(workspace(),)))
    assert load_document(tmp_path) == document(workspaces=(workspace(),))
    (tmp_path / "state.json").write_text("half a docu")
    assert load_document(tmp_path) is None


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"<html>", b'{"host_id": 3}', b"[]"])
def test_a_body_that_is_no_document_is_rejected(body: bytes) -> None:
    with pytest.raises(RejectedDocument):
        read_document(body, host_id=HOST_ID)


def test_a_document_for_another_host_or_with_doubles_is_rejected() -> None:
    good = document(workspaces=(workspace(),))
    with pytest.raises(RejectedDocument, match="not this one"):
        read_document(encode_state(good), host_id="other")
    doubled = document(workspaces=(workspace(id="w1"), workspace(id="w2")))
    with pytest.raises(RejectedDocument, match="workspace name web twice"):
        read_document(encode_state(doubled), host_id=HOST_ID)


def test_fields_of_a_newer_server_are_ignored() -> None:
    raw = msgspec.json.decode(encode_state(document(workspaces=(workspace(),))))
    raw["from_the_future"] = {"a": 1}
    raw["workspaces"][0]["spec"]["teleport"] = True
    body = msgspec.json.encode(raw)
    assert read_document(body, host_id=HOST_ID) == document(workspaces=(workspace(),))
