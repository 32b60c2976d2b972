"""Whoever rules the database, but has no keys, gets Trailer to vouch for nothing they wrote."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from tests.trailer.audit_scene import make_rows, make_sealed, stored_id, superuser, told
from trailer.audit import horizon, sealing, verify
from trailer.audit.chain import pack, seal_digest
from trailer.audit.head import HEAD_FALSE
from trailer.audit.models import AuditEntry, AuditSeal
from trailer.audit.sealing import audit_seal, rows_between
from trailer.audit.tasks import seal_audit, verify_audit
from trailer.audit.verify import audit_verify
from trailer.leases.models import JobLease

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def head(settings: Any, tmp_path: Path) -> Path:
    settings.TRAILER_DATA_DIR = tmp_path
    return tmp_path / "audit.head"


def tick() -> None:
    """A minute later."""
    JobLease.objects.all().delete()
    seal_audit()


def failures() -> list[str]:
    rows = AuditEntry.objects.filter(action="audit.verify", outcome="failed").order_by("at")
    return [problem for row in rows for problem in row.changes[0]["to"]]


def forge(row: AuditEntry, *, key: str | None = None) -> None:
    """Another actor in a row, and every digest after it recomputed; signatures stay."""
    superuser("UPDATE audit_auditentry SET actor_name = 'x' WHERE id = %s", stored_id(row.id))
    previous = ""
    for seal in AuditSeal.objects.order_by("number"):
        seal.previous, seal.rows = previous, pack(rows_between(seal.since, seal.until))
        seal.digest = previous = seal_digest(seal)
        superuser(
            "UPDATE audit_auditseal SET previous = %s, rows = %s, digest = %s, key = %s "
            "WHERE number = %s",
            *(seal.previous, seal.rows, seal.digest, key or seal.key, seal.number),
        )


def test_nothing_is_sealed_on_top_of_a_chain_of_an_unknown_key() -> None:
    forge(make_sealed(minutes_ago=90)[0], key="deadbeef")
    make_rows(2, hours_ago=1)
    for _ in range(3):
        tick()
    assert AuditSeal.objects.count() == 1
    # Told once, not every minute.
    assert failures() == [
        "Seal 1 is signed with a key that this server does not have. Restore TRAILER_SECRET_KEYS."
    ]
    assert "no later one vouches for them" in told()


def test_nothing_is_sealed_on_top_of_a_false_signature() -> None:
    forge(make_sealed(minutes_ago=90)[0])
    make_rows(2, hours_ago=1)
    for _ in range(3):
        tick()
    assert AuditSeal.objects.count() == 1
    assert failures() == ["Seal 1 has a false signature: it was not made by Trailer."]


def test_a_rotation_vouches_for_nothing_that_was_forged(settings: Any) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.TRAILER_SECRET_KEYS = [old]
    forge(make_sealed()[0])
    settings.TRAILER_SECRET_KEYS = [new, old]
    said = io.StringIO()
    with pytest.raises(CommandError, match=r"Nothing was rotated.*--force"):
        call_command("rotate_secrets", stdout=io.StringIO(), stderr=said)
    assert "Seal 1 has a false signature" in said.getvalue()
    assert not AuditEntry.objects.filter(action="secret.rotate").exists()
    assert AuditSeal.objects.count() == 1
    call_command("rotate_secrets", force=True, stdout=io.StringIO(), stderr=said)
    # Who forced it is told for ever over what.
    [forced] = AuditEntry.objects.filter(action="secret.rotate")
    assert "Seal 1 has a false signature" in str(forced.changes)
    assert AuditSeal.objects.count() == 2


def test_a_lost_key_is_got_over_by_force(settings: Any) -> None:
    make_sealed()
    settings.TRAILER_SECRET_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError):
        call_command("rotate_secrets", stdout=io.StringIO(), stderr=io.StringIO())
    call_command("rotate_secrets", force=True, stdout=io.StringIO(), stderr=io.StringIO())
    assert audit_verify().problems == []
    make_rows(1, hours_ago=-1)
    assert audit_seal(timezone.now() + timedelta(hours=2)) > 0
    assert audit_verify().problems == []


def test_an_end_that_is_moved_forward_for_a_moment_hides_no_rows() -> None:
    """Rows between both ends would be under no seal."""
    make_sealed()
    [seal] = AuditSeal.objects.all()
    moved = "UPDATE audit_auditseal SET until = %s WHERE number = 1"
    now = timezone.now()
    hidden = make_rows(3, hours_ago=-1)
    superuser(moved, now + timedelta(hours=2))
    with pytest.raises(sealing.NotSealed, match=r"Seal 1 .* was changed"):
        audit_seal(now + timedelta(hours=4))
    # As a version did that did not look.
    audit_seal(now + timedelta(hours=4), over_problems=True)
    superuser(moved, seal.until)
    superuser("DELETE FROM audit_auditentry WHERE id = %s", stored_id(hidden[0].id))
    assert "Seal 2 does not begin where the one before ends" in told()


def test_a_key_that_is_not_known_is_accepted_only_before_the_first_that_is() -> None:
    make_sealed()
    for hours in (1, 3):
        make_rows(1, hours_ago=-hours)
        audit_seal(timezone.now() + timedelta(hours=hours + 1))
    name = "UPDATE audit_auditseal SET key = %s WHERE number = %s"
    superuser(name, "deadbeef", 2)
    assert "Seal 2 is signed with a key that this server does not have" in told()
    superuser(name, "deadbeef", 1)
    assert audit_verify().problems == []
    superuser(name, "deadbeef", 3)
    assert "Seals 1 to 3 are signed with a key" in told()


def test_a_key_that_was_replaced_does_not_come_back(settings: Any) -> None:
    """While servers get a new key one by one: an older seal between two newer ones could not be
    told from a forged one once its key is gone."""
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.TRAILER_SECRET_KEYS = [old, new]
    make_sealed()
    settings.TRAILER_SECRET_KEYS = [new, old]
    now = timezone.now()
    audit_seal(now, in_any_case=True)
    settings.TRAILER_SECRET_KEYS = [old, new]
    with pytest.raises(sealing.NotSealed, match="was replaced by another key"):
        audit_seal(now, in_any_case=True)
    assert audit_verify().problems == []
    settings.TRAILER_SECRET_KEYS = [new, old]
    audit_seal(now, in_any_case=True)
    settings.TRAILER_SECRET_KEYS = [new]
    assert audit_verify().problems == []


@pytest.mark.parametrize("numbers", [1, 2])
def test_seals_that_were_cut_off_are_not_made_anew_over_other_rows(
    numbers: int, head: Path
) -> None:
    row = make_sealed(minutes_ago=90)[0]
    make_rows(2, hours_ago=1)
    tick()
    tick()
    number, digest = head.read_text().split()[0].split(":")
    assert digest == AuditSeal.objects.get(number=int(number)).digest
    superuser("UPDATE audit_auditentry SET actor_name = 'x' WHERE id = %s", stored_id(row.id))
    superuser("DELETE FROM audit_auditseal WHERE number >= %s", numbers)
    for _ in range(3):
        tick()
    assert AuditSeal.objects.count() == numbers - 1
    assert failures() == [
        f"There is no seal {number}:{digest}: the end was cut off, or everything rewritten."
    ]
    JobLease.objects.all().delete()
    verify_audit()
    assert any("There is no seal" in problem for problem in audit_verify().problems)


def test_the_operator_accepts_a_chain_that_was_put_back(head: Path) -> None:
    make_sealed()
    tick()
    superuser("DELETE FROM audit_auditseal WHERE number >= %s", 1)
    with pytest.raises(CommandError):
        call_command("verify_audit", stderr=io.StringIO())
    call_command("verify_audit", forget_head=True, stdout=io.StringIO())
    assert not head.exists()
    [accepted] = AuditEntry.objects.filter(action="audit.accepted")
    assert accepted.changes[0]["from"].startswith("1:")
    tick()
    assert AuditSeal.objects.count() == 1


@pytest.mark.parametrize(
    "text", ["", "1:00 {key} 00", "\udcff" * 90], ids=["nothing", "other", "no text"]
)
def test_a_head_that_was_not_written_by_trailer_is_told(text: str, head: Path) -> None:
    make_sealed()
    tick()
    key = head.read_text().split()[1]
    head.write_text(text.format(key=key), errors="surrogateescape")
    tick()
    tick()
    assert failures() == [HEAD_FALSE]
    assert HEAD_FALSE in told()


def test_a_head_of_an_unknown_key_still_has_to_be_in_the_chain(head: Path) -> None:
    make_sealed()
    for number in ("7", "9" * 40):
        head.write_text(f"{number}:00 deadbeef 00")
        tick()
        assert f"There is no seal {number}:00" in failures()[-1]


def test_a_server_that_comes_back_without_the_key_of_its_head_goes_on(
    settings: Any, head: Path
) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.TRAILER_SECRET_KEYS = [old]
    make_sealed()
    tick()
    before = head.read_text()
    settings.TRAILER_SECRET_KEYS = [new, old]
    call_command("rotate_secrets", stdout=io.StringIO())
    head.write_text(before)
    settings.TRAILER_SECRET_KEYS = [new]
    tick()
    assert failures() == []
    assert head.read_text() != before


def test_a_head_that_cannot_be_kept_stops_no_seal(settings: Any, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    for name in (str(blocked / "audit.head"), str(tmp_path), "absent/audit.head", ""):
        settings.TRAILER_AUDIT_HEAD = name
        make_rows(1)
        tick()
        assert failures() == []
    assert AuditSeal.objects.exists()
    assert list(tmp_path.iterdir()) == [blocked]


def test_a_format_that_is_not_known_is_a_problem_of_its_seal() -> None:
    row = make_sealed(minutes_ago=90)[0]
    [newer, _] = make_rows(2, hours_ago=1)
    tick()
    superuser("UPDATE audit_auditseal SET format = 9 WHERE number = %s", 1)
    for changed in (row, newer):
        superuser(
            "UPDATE audit_auditentry SET actor_name = 'x' WHERE id = %s", stored_id(changed.id)
        )
    assert "Seal 1 has the format 9, which is not known here." in told()
    assert f"Row {newer.id}" in told()


def test_rows_that_cannot_be_compared_are_a_problem_of_their_seal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_sealed()

    def fail(row: AuditEntry, form: int) -> bytes:
        raise ValueError("broken")

    monkeypatch.setattr(verify, "row_digest", fail)
    assert audit_verify().problems == ["Seal 1 could not be compared: ValueError."]


def test_a_comparison_that_breaks_off_is_told_and_done_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_sealed()

    def fail(found: Any, seal: AuditSeal) -> None:
        raise ValueError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(verify, "_check", fail)
        with pytest.raises(ValueError, match="broken"):
            verify_audit()
        JobLease.objects.update(held_until=timezone.now())
        with pytest.raises(ValueError, match="broken"):
            verify_audit()
    assert failures() == ["The audit could not be compared with its seals: ValueError."]
    JobLease.objects.update(held_until=timezone.now())
    verify_audit()
    newest = AuditEntry.objects.filter(action="audit.verify").order_by("-at")[0]
    assert newest.outcome == "done"


def test_a_seal_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    make_sealed()

    def fail() -> None:
        raise ValueError("broken")

    monkeypatch.setattr(sealing, "newest_seal", fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            tick()
    assert failures() == ["The audit could not be sealed: ValueError."]


def test_a_clock_that_is_ahead_of_the_databases_is_not_believed() -> None:
    ahead = timezone.now() + timedelta(days=1)
    believed = horizon.not_ahead(ahead)
    if connection.vendor == "postgresql":
        assert abs(believed - timezone.now()) < timedelta(minutes=1)
    else:
        assert believed == ahead


@pytest.mark.parametrize("table", ["audit_auditentry", "audit_auditseal"])
def test_the_tables_cannot_be_emptied(table: str) -> None:
    """SQLite does not even know the word."""
    make_sealed()
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {table}")
    assert audit_verify().rows == 5


def test_all_of_a_seal_is_read_and_written_in_one_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_rows(1)
    inside: list[bool] = []
    look = sealing.newest_seal
    outer = len(connection.savepoint_ids)

    def newest() -> AuditSeal | None:
        inside.append(len(connection.savepoint_ids) > outer)
        return look()

    monkeypatch.setattr(sealing, "newest_seal", newest)
    audit_seal(timezone.now())
    # The first look is the one that writes down what is known.
    assert inside == [False, True, True]
