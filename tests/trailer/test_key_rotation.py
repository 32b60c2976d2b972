"""Rotation of the keys of secrets at rest: everything stays readable, with the new key alone."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from images.models import Registry
from tests.factories import make_host, make_registry
from tests.workspaces.scene import CANARY, make_scene
from trailer.accounts.models import SecondFactor
from trailer.accounts.second_factor import factor_begin
from trailer.audit.models import AuditEntry
from trailer.errors import Unavailable
from trailer.key_rotation import bind_secrets, rotate_secrets
from trailer.keys import load_or_create_keys
from trailer.sealed import unseal, unseal_mapping
from workspaces.control.compile import document_for
from workspaces.models import EnvVar, Revision

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


def new_key() -> str:
    return Fernet.generate_key().decode()


def test_every_secret_is_readable_with_the_new_key_alone(settings: Any) -> None:
    old, new = new_key(), new_key()
    settings.TRAILER_SECRET_KEYS = [old]
    scene = make_scene()
    workspace = scene.create_full()
    registry = make_registry(password="registry-password")
    host = make_host(host_key="key-of-the-host")
    factor_begin(actor=scene.owner)
    document_for(scene.host.pk, "")
    settings.TRAILER_SECRET_KEYS = [new, old]
    first = rotate_secrets()
    assert first.renewed >= 6
    assert first.unreadable == {}
    assert rotate_secrets().renewed == 0
    settings.TRAILER_SECRET_KEYS = [new]
    variable = EnvVar.objects.get(workspace=workspace, is_secret=True)
    assert unseal(variable, "secret_token") == CANARY
    revision = Revision.objects.get(workspace=workspace)
    assert unseal_mapping(revision, "secret_env_token") == {"PASSWORD": CANARY}
    registry.refresh_from_db()
    host.refresh_from_db()
    assert unseal(registry, "password_token") == "registry-password"
    assert unseal(host, "host_key") == "key-of-the-host"
    assert unseal(SecondFactor.objects.get(), "secret_token")
    assert CANARY.encode() in (document_for(scene.host.pk, "").body or b"")


def test_a_cell_that_no_key_opens_is_told_and_left(settings: Any) -> None:
    settings.TRAILER_SECRET_KEYS = [new_key()]
    lost = make_registry().pk
    settings.TRAILER_SECRET_KEYS = [new_key()]
    found = rotate_secrets()
    assert found.unreadable == {"images_registry.password_token": 1}
    registry = Registry.objects.get(pk=lost)
    with pytest.raises(Unavailable):
        unseal(registry, "password_token")


def test_what_an_older_version_wrote_is_readable_and_is_bound_at_the_next_start(
    settings: Any,
) -> None:
    registry, new = make_registry(password="kept"), new_key()
    bare = Fernet(settings.TRAILER_SECRET_KEYS[-1]).encrypt(b"older").decode()
    Registry.objects.filter(pk=registry.pk).update(password_token=bare)
    registry.refresh_from_db()
    assert unseal(registry, "password_token") == "older"
    # A key that came meanwhile is used, and what is bound already is left to a rotation.
    settings.TRAILER_SECRET_KEYS = [new, *settings.TRAILER_SECRET_KEYS]
    make_host()
    assert bind_secrets().renewed == 1
    registry.refresh_from_db()
    assert registry.password_token.startswith("t2.")
    assert unseal(registry, "password_token") == "older"
    assert bind_secrets().renewed == 0


def test_a_rotation_finds_what_was_copied_from_elsewhere() -> None:
    mine, yours = make_registry(password="mine"), make_registry(password="yours")
    Registry.objects.filter(pk=mine.pk).update(password_token=yours.password_token)
    found = rotate_secrets()
    assert found.unreadable == {"images_registry.password_token": 1}


def test_the_command_makes_a_key_then_writes_anew(settings: Any, tmp_path: Path) -> None:
    before = load_or_create_keys(tmp_path, secret_key="x", fernet_keys=[]).fernet_keys
    settings.TRAILER_DATA_DIR = tmp_path
    settings.TRAILER_SECRET_KEYS = before
    make_registry()
    out = StringIO()
    call_command("rotate_secrets", make_key=True, stdout=out)
    after = load_or_create_keys(tmp_path, secret_key="x", fernet_keys=[]).fernet_keys
    assert after[1:] == before
    assert (tmp_path / "fernet.keys").stat().st_mode & 0o077 == 0
    settings.TRAILER_SECRET_KEYS = after
    call_command("rotate_secrets", stdout=out)
    assert "1 secret written anew" in out.getvalue()
    assert AuditEntry.objects.filter(action="secret.rotate").exists()


def test_a_new_key_beside_those_of_the_environment_is_written_and_never_printed(
    settings: Any, tmp_path: Path
) -> None:
    settings.TRAILER_DATA_DIR = tmp_path
    said, target = StringIO(), tmp_path / "new.key"
    with pytest.raises(CommandError, match="--key-file") as refused:
        call_command("rotate_secrets", make_key=True, stdout=said, stderr=said)
    call_command("rotate_secrets", make_key=True, key_file=target, stdout=said, stderr=said)
    key = target.read_text().strip()
    Fernet(key)
    assert target.stat().st_mode & 0o777 == 0o600
    told = str(refused.value) + said.getvalue()
    assert key not in told
    assert not re.search(r"[A-Za-z0-9_-]{43}=", told)
    with pytest.raises(CommandError, match="was not written"):
        call_command("rotate_secrets", make_key=True, key_file=target)
    assert target.read_text().strip() == key
