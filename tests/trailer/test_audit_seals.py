"""The seals over the audit: whoever rewrites history past the triggers is told on."""

from __future__ import annotations

import csv
import io
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction
from django.test import Client
from django.utils import timezone

from tests.factories import api_client
from tests.trailer.audit_scene import make_rows, make_sealed, stored_id, superuser, told
from trailer.audit import sealing
from trailer.audit.chain import COLUMNS, FORMAT, unpack
from trailer.audit.horizon import settled_before
from trailer.audit.models import AppendOnly, AuditEntry, AuditSeal
from trailer.audit.record import record
from trailer.audit.sealing import audit_seal
from trailer.audit.tasks import seal_audit, verify_audit
from trailer.audit.verify import audit_verify

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_head(settings: Any, tmp_path: Path) -> None:
    settings.TRAILER_AUDIT_HEAD = str(tmp_path / "audit.head")


def test_settled_rows_are_sealed_once_and_newer_ones_wait() -> None:
    rows = make_rows(3)
    record("user.login", actor_name="just now")
    assert audit_seal(timezone.now()) == 3
    assert audit_seal(timezone.now()) == 0
    [seal] = AuditSeal.objects.all()
    assert (seal.count, seal.first_id, seal.last_id) == (3, rows[0].id, rows[2].id)
    assert [pk for pk, _ in unpack(bytes(seal.rows))] == [row.id for row in rows]
    found = audit_verify()
    assert (found.rows, found.unsealed, found.problems) == (3, 1, [])


def test_many_rows_take_seals_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_ROWS", 2)
    rows = make_rows(5)
    # More rows of one moment than a seal should have stay together.
    for _ in range(3):
        AuditEntry.objects.create(at=rows[4].at, via="system", action="host.update")
    assert audit_seal(timezone.now()) == 8
    assert [seal.count for seal in AuditSeal.objects.order_by("number")] == [2, 2, 4, 0]
    assert (audit_verify().rows, audit_verify().problems) == (8, [])


def test_quiet_time_is_sealed_by_the_hour() -> None:
    make_sealed()
    now = timezone.now()
    assert (audit_seal(now + timedelta(minutes=30)), AuditSeal.objects.count()) == (0, 1)
    assert (audit_seal(now + timedelta(minutes=61)), AuditSeal.objects.count()) == (0, 2)
    assert audit_verify().problems == []


def test_a_changed_row_is_named() -> None:
    row = make_sealed()[2]
    superuser(
        "UPDATE audit_auditentry SET actor_name = 'mallory' WHERE id = %s", stored_id(row.id)
    )
    assert f"Row {row.id} (host.update by mallory" in told()
    assert "was changed after it was sealed (seal 1)" in told()


def test_a_deleted_row_is_named() -> None:
    row = make_sealed()[4]
    superuser("DELETE FROM audit_auditentry WHERE id = %s", stored_id(row.id))
    assert f"Row {row.id} is missing" in told()


def test_a_row_that_is_written_into_sealed_time_is_named() -> None:
    """A transaction that commits late, and a hand that writes history: neither passes unseen."""
    late = AuditEntry.objects.create(at=make_sealed()[1].at, via="system", action="user.login")
    assert f"Row {late.id}" in told()
    assert "was added later: seal 1 does not know it" in told()


def test_rows_that_change_places_are_named() -> None:
    first, second, *_ = make_sealed()
    for row, at in ((first, second.at), (second, first.at)):
        superuser("UPDATE audit_auditentry SET at = %s WHERE id = %s", at, stored_id(row.id))
    assert all(f"Row {row.id}" in told() for row in (first, second))


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE audit_auditseal SET rows = %s WHERE number = 1", "Seal 1 (up to"),
        ("UPDATE audit_auditseal SET digest = %s WHERE number = 1", "Seal 2 does not follow"),
        ("UPDATE audit_auditseal SET signature = %s WHERE number = 2", "Seal 2 has a false"),
        ("UPDATE audit_auditseal SET key = %s WHERE number = 2", "Seal 2 is signed with a key"),
        (
            "DELETE FROM audit_auditseal WHERE number = 1 AND key <> %s",
            "seals, 1 to 1 are missing",
        ),
    ],
)
def test_a_seal_that_was_tampered_with_is_named(statement: str, sentence: str) -> None:
    make_sealed()
    make_rows(2, hours_ago=-1)
    audit_seal(timezone.now() + timedelta(hours=2))
    value: Any = b"x" * 48 if "rows" in statement else "ab" * (4 if "key" in statement else 32)
    superuser(statement, value)
    assert sentence in told()


def test_the_end_cannot_be_cut_off_unseen_by_who_kept_a_seal() -> None:
    make_sealed()
    head = AuditSeal.objects.get().head
    assert audit_verify(head).problems == []
    superuser("DELETE FROM audit_auditseal WHERE number >= %s", 1)
    assert audit_verify().problems == []
    assert f"There is no seal {head}" in " ".join(audit_verify(head).problems)


def test_seals_can_be_neither_changed_nor_deleted() -> None:
    make_sealed()
    seal = AuditSeal.objects.get()
    for attempt in (
        seal.save,
        seal.delete,
        AuditSeal.objects.all().delete,
        lambda: AuditSeal.objects.update(count=0),
        lambda: AuditSeal.objects.bulk_update([seal], ["count"]),
    ):
        with pytest.raises(AppendOnly):
            attempt()
    for statement in ("UPDATE audit_auditseal SET count = 0", "DELETE FROM audit_auditseal"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert audit_verify().problems == []


def test_older_keys_can_go_after_a_rotation(settings: Any) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.TRAILER_SECRET_KEYS = [old]
    row = make_sealed()[0]
    settings.TRAILER_SECRET_KEYS = [new]
    assert "signed with a key that this server does not have" in told()
    settings.TRAILER_SECRET_KEYS = [new, old]
    call_command("rotate_secrets", stdout=io.StringIO())
    settings.TRAILER_SECRET_KEYS = [new]
    assert audit_verify().problems == []
    # Even whoever has the old key now cannot rewrite what it sealed.
    settings.TRAILER_SECRET_KEYS = [old]
    superuser("DELETE FROM audit_auditentry WHERE id = %s", stored_id(row.id))
    newer = AuditSeal.objects.defer("rows").get(number=2)
    superuser("DELETE FROM audit_auditseal WHERE number >= %s", 1)
    Path(settings.TRAILER_AUDIT_HEAD).unlink()
    audit_seal(timezone.now())
    settings.TRAILER_SECRET_KEYS = [new]
    newer.rows = b""
    newer._state.adding = True
    newer.save(force_insert=True)
    assert "Seal 2 does not follow the one before" in told()


def test_every_column_is_sealed() -> None:
    assert set(COLUMNS[FORMAT]) == {field.attname for field in AuditEntry._meta.concrete_fields}


def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("verify_audit")
    assert "Nothing is sealed yet" in capsys.readouterr().out
    row = make_sealed(4)[3]
    call_command("verify_audit")
    said = capsys.readouterr().out
    assert ", 4 rows: all as sealed." in said
    assert AuditSeal.objects.get().head in said
    superuser("UPDATE audit_auditentry SET outcome = 'x' WHERE id = %s", stored_id(row.id))
    with pytest.raises(CommandError, match="not as it was sealed"):
        call_command("verify_audit")
    assert str(row.id) in capsys.readouterr().err
    assert [entry.outcome for entry in AuditEntry.objects.filter(action="audit.verify")] == [
        *("failed", "done", "done")
    ]


def test_a_table_that_was_rewritten_whole_is_told_in_a_hundred_sentences() -> None:
    make_sealed(120)
    superuser("UPDATE audit_auditentry SET actor_name = %s", "mallory")
    found = audit_verify()
    assert (len(found.problems), found.untold) == (100, 20)


def test_the_jobs_seal_and_compare_by_themselves(admin: User) -> None:
    verify_audit()
    assert not AuditEntry.objects.filter(action="audit.verify").exists()
    make_rows(2)
    seal_audit()
    verify_audit()
    verify_audit()
    assert AuditEntry.objects.filter(action="audit.verify", outcome="done").count() == 1
    browser = Client()
    browser.force_login(admin)
    page = browser.get("/audit/").content.decode()
    assert "sealed up to" in page
    assert "last verified" in page


def test_the_export_names_the_seal_over_each_row(admin: User) -> None:
    make_sealed(2)
    record("user.login", actor_name="just now")
    answer = api_client(admin).get("/api/v1/audit/export/")
    text = b"".join(cast("Any", answer).streaming_content).decode()
    seal = AuditSeal.objects.get()
    told = [(row["seal"], row["seal_digest"]) for row in csv.DictReader(io.StringIO(text))]
    assert told == [("", ""), ("1", seal.digest), ("1", seal.digest)]


@pytest.mark.django_db(transaction=True)
def test_two_jobs_at_once_do_no_harm() -> None:
    make_rows(40)
    now = timezone.now()
    start = threading.Barrier(4)

    def seal() -> None:
        start.wait()
        audit_seal(now)
        connections.close_all()

    threads = [threading.Thread(target=seal) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert AuditSeal.objects.count() == 1
    assert (audit_verify().rows, audit_verify().problems) == (40, [])


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sealed_past_a_transaction_that_has_not_ended() -> None:
    """On SQLite a writer keeps everybody else from writing, so there is none to wait for."""
    written, ended = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            make_rows(1, hours_ago=0)
            written.set()
            ended.wait(20)
        connections.close_all()

    begun = timezone.now()
    thread = threading.Thread(target=slow)
    thread.start()
    assert written.wait(20)
    try:
        later = settled_before(begun + timedelta(hours=1))
    finally:
        ended.set()
        thread.join()
    is_bounded = connection.vendor == "postgresql"
    assert (later < begun) is is_bounded
    assert settled_before(begun + timedelta(hours=1)) > begun
