"""A database without room on its disk: recognised, told once in words, and over by itself."""

from __future__ import annotations

import errno
import logging
import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import DatabaseError, OperationalError
from django.test import Client

from tests.factories import api_client, make_admin, make_host
from tests.workspaces.agent_client import AgentClient
from trailer import storage as module
from trailer.api import exceptions
from trailer.logs import OneLineForAFullDisk
from trailer.storage import FLOOR_BYTES, storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db


class Disk:
    """The disk under the database, as the module sees it."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.free = 50 * FLOOR_BYTES
        self.takes_writes = True


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    found = Disk(tmp_path)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_folder", lambda: found.folder)
    monkeypatch.setattr(module, "_free_bytes", lambda _: found.free)
    monkeypatch.setattr(module, "_can_write", lambda _: found.takes_writes)
    storage.cache_clear()
    yield found
    storage.cache_clear()


def sqlite_full() -> OperationalError:
    inner = sqlite3.OperationalError("database or disk is full")
    inner.sqlite_errorcode = sqlite3.SQLITE_FULL
    return caused_by(inner)


def sqlite_io() -> OperationalError:
    inner = sqlite3.OperationalError("disk I/O error")
    inner.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    return caused_by(inner)


def caused_by(inner: BaseException) -> OperationalError:
    error = OperationalError(str(inner))
    error.__cause__ = inner
    return error


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def locked() -> OperationalError:
    return caused_by(sqlite3.OperationalError("database is locked"))


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (sqlite_full(), True),
        (caused_by(psycopg.errors.DiskFull("could not extend file")), True),
        (no_space(), True),
        (locked(), False),
        (sqlite_io(), False),
        (OSError(errno.EACCES, "no"), False),
        (ValueError("full"), False),
    ],
)
def test_want_of_room_is_told_from_other_errors(
    disk: Disk, error: BaseException, is_full: bool
) -> None:
    assert storage().is_cause_of(error) is is_full


def test_an_input_output_error_is_want_of_room_only_while_there_is_none(disk: Disk) -> None:
    disk.free = 0
    assert storage().is_cause_of(sqlite_io())


def test_the_sentence_names_the_disk_and_ends_with_the_trouble(disk: Disk) -> None:
    assert storage().trouble() == ""
    disk.free = 4096
    told = storage().trouble()
    assert str(disk.folder) in told
    assert "is full (4096 bytes free): nothing can be saved" in told
    disk.free = 2 * FLOOR_BYTES
    assert storage().trouble() == ""


def test_after_an_error_it_is_over_when_something_can_be_written(disk: Disk) -> None:
    disk.takes_writes = False
    assert storage().is_cause_of(sqlite_full())
    assert storage().trouble()
    disk.takes_writes = True
    assert storage().trouble() == ""


def test_it_is_one_line_in_the_log_and_one_when_it_is_over(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="trailer.storage")
    disk.free = 0
    for _ in range(5):
        storage().is_cause_of(sqlite_full())
        storage().trouble()
    disk.free = 2 * FLOOR_BYTES
    storage().trouble()
    storage().trouble()
    assert [record.message for record in caplog.records] == [
        "the database's disk is full",
        "the database's disk has room again",
    ]


def test_tracebacks_of_it_stay_out_of_the_log(disk: Disk) -> None:
    def line(error: BaseException | None) -> logging.LogRecord:
        info = (type(error), error, None) if error else None
        return logging.LogRecord("x", logging.ERROR, "", 0, "failed", (), info)

    kept = OneLineForAFullDisk().filter
    answer = logging.LogRecord("django.request", logging.ERROR, "", 0, "Unavailable", (), None)
    answer.status_code = 503
    assert kept(answer)
    disk.free = 0
    assert not kept(answer)
    assert not kept(line(sqlite_full()))
    assert kept(line(locked()))
    assert kept(line(None))


def test_readiness_fails_with_the_disks_name_and_comes_back(disk: Disk) -> None:
    disk.free = 0
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    (reason,) = answer.json()["reasons"]
    assert str(disk.folder) in reason
    disk.free = 2 * FLOOR_BYTES
    assert Client().get("/readyz").status_code == 200


def test_scripts_and_agents_get_the_disks_name(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.free = 0
    host = make_host()
    client = api_client(make_admin())
    agent = AgentClient(host)

    def fail(*_: object, **__: object) -> None:
        raise sqlite_full()

    monkeypatch.setattr("hosts.api.views.host_create", fail)
    monkeypatch.setattr("workspaces.control.views.report_ingest", fail)
    answers = [client.post("/api/v1/hosts/", {"name": "h"}), agent.report()]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert str(disk.folder) in answer.json()["message"]
        assert answer.headers["Retry-After"] == "5"


def test_a_database_that_is_away_is_still_said_to_be_away(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    told = exceptions.database_trouble(locked())
    assert told == "The database does not answer. Try again shortly."
    assert [record.message for record in caplog.records] == ["database unavailable"]


def test_pages_and_hosts_say_it(disk: Disk) -> None:
    disk.free = 0
    admin, host = make_admin(), make_host()
    client = Client()
    client.force_login(admin)
    html = client.get(f"/hosts/{host.pk}/").content.decode()
    assert 'data-notice="full-disk"' in html
    assert str(disk.folder) in html
    told = api_client(admin).get(f"/api/v1/hosts/{host.pk}/").json()
    assert str(disk.folder) in told["message"]


def test_of_a_database_elsewhere_the_database_itself_is_asked(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.folder = None
    monkeypatch.setattr("trailer.storage.connection.vendor", "postgresql", raising=False)
    room = [False]
    monkeypatch.setattr(module, "_can_extend", lambda: room[0])
    assert storage().trouble() == ""
    assert storage().is_cause_of(caused_by(psycopg.errors.DiskFull("no space")))
    assert "The disk of the database on" in storage().trouble()
    room[0] = True
    assert storage().trouble() == ""


def test_a_page_that_cannot_be_made_says_it_too(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.free = 0
    client = Client(raise_request_exception=False)
    client.force_login(make_admin())

    def fail(*_: object, **__: object) -> None:
        raise DatabaseError from sqlite_full()

    monkeypatch.setattr("trailer.pages.hosts.HostListView.get_context_data", fail)
    answer = client.get("/hosts/")
    assert answer.status_code == 503
    assert str(disk.folder) in answer.content.decode()
