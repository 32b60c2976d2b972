"""A backup is proved by restoring it: rows, keys, and agents that wait for a confirmation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from tests.ground.template import copy_migrated_database

ROOT = Path(__file__).resolve().parents[2]
SCENE = """
from datetime import timedelta
from django.core.management import call_command
from django.utils import timezone
from hosts.models import Host
from trailer.audit.record import record
from trailer.audit.sealing import audit_seal
from trailer.sealed import seal
call_command("migrate", verbosity=0)
host = Host(name="north")
host.host_key = seal(host, "host_key", "a label key")
host.save()
record("host.create", host)
audit_seal(timezone.now() + timedelta(minutes=5))
call_command("backup", FILE)
Host.objects.create(name="south")
"""
RESTORE = """
from django.core.management import call_command
call_command("restore", FILE, "--yes")
"""
KILLED = """
import os
from django.db import connection
from trailer.backup import archive
archive._keep_keys = lambda *keys: os._exit(9)
connection.close()
child = os.fork()
if child == 0:
    call_command("restore", FILE, "--yes")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
"""
LOOK = """
import json
from hosts.models import Host
from trailer.audit.verify import audit_verify
from trailer.sealed import unseal
found = audit_verify()
assert found.rows and not found.problems, found
print(json.dumps({h.name: [unseal(h, "host_key"), h.state_restored]
                  for h in Host.objects.all()}))
"""


def shell(folder: Path, code: str, file: Path, **settings: str) -> str:
    """What an operator does, in an installation of its own."""
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("TRAILER_", "SECRET"))}
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", f"FILE = {str(file)!r}\n{code}"],
        cwd=ROOT,
        env={**outer, "TRAILER_DATA_DIR": str(folder), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def hosts(said: str) -> Any:
    return json.loads(said.strip().splitlines()[-1])


def test_a_backup_comes_back_here_and_on_another_machine(tmp_path: Path) -> None:
    file, first, other = tmp_path / "monday.tar.gz", tmp_path / "first", tmp_path / "other"
    copy_migrated_database(first)
    shell(first, SCENE, file)
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as archive:
        assert archive.getnames() == ["about.json", "keys.json", "database"]
    # Here: what came after the backup is gone.
    assert hosts(shell(first, RESTORE + LOOK, file)) == {"north": ["a label key", True]}
    # There: the keys came along, for processes that start from now on.
    assert "remove nothing until you confirm" in " ".join(shell(other, RESTORE, file).split())
    assert hosts(shell(other, LOOK, file)) == {"north": ["a label key", True]}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_restore_that_is_killed_over_it_has_marked_every_host(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """An agent may ask for its state at any moment: the rows never appear without the mark."""
    settings, data = {}, tmp_path / "data"
    if kind == "sqlite":
        copy_migrated_database(data)
    else:
        server = request.getfixturevalue("postgres_url")
        with closing(psycopg.connect(server, autocommit=True)) as connection:
            connection.execute("CREATE DATABASE to_restore")
        settings["DATABASE_URL"] = f"{server.rpartition('/')[0]}/to_restore"
    said = shell(data, SCENE + KILLED + LOOK, tmp_path / "monday.tar.gz", **settings)
    assert hosts(said) == {"north": ["a label key", True]}


def test_a_restore_must_be_meant() -> None:
    with pytest.raises(CommandError, match="--yes"):
        call_command("restore", "monday.tar.gz")


@pytest.mark.parametrize("body", [b"", b"not an archive"])
def test_a_file_that_is_no_backup_is_refused_in_one_sentence(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "x").write_bytes(body)
    with pytest.raises(CommandError, match="is not a backup of Trailer"):
        call_command("restore", str(tmp_path / "x"), "--yes")


def test_a_backup_into_no_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no folder"):
        call_command("backup", str(tmp_path / "absent" / "x"))


def test_a_restore_with_other_keys_tells_no_key_and_hands_them_to_the_operator_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [Fernet.generate_key().decode() for _ in range(2)]
    parts = {
        "about.json": {"format": 1, "version": "1", "created_at": "now", "vendor": "sqlite"},
        "keys.json": {"secret_key": "canary-secret-key", "fernet_keys": keys},
        "database": {},
    }
    file, target = tmp_path / "monday.tar.gz", tmp_path / "keys"
    with tarfile.open(file, "w:gz") as archive:
        for name, content in parts.items():
            (tmp_path / name).write_text(json.dumps(content))
            archive.add(tmp_path / name, name)
    monkeypatch.setenv("TRAILER_SECRET_KEYS", Fernet.generate_key().decode())
    monkeypatch.setattr("trailer.backup.archive.connection", SimpleNamespace(vendor="sqlite"))
    with pytest.raises(CommandError, match="--write-keys") as refused:
        call_command("restore", str(file), "--yes")
    call_command("restore", str(file), write_keys=target)
    assert target.read_text() == ",".join(keys) + "\n"
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="were not written"):
        call_command("restore", str(file), write_keys=target)
    written = capfd.readouterr()
    told = str(refused.value) + written.out + written.err
    assert "nothing was changed" in str(refused.value)
    assert not [key for key in (*keys, "canary-secret-key") if key in told]
