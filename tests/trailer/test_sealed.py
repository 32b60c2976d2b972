"""A stored secret opens only in its own row and column: for every such column of the schema."""

from __future__ import annotations

import json
import re
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.db import models

from tests.factories import (
    api_client,
    make_host,
    make_image,
    make_registry,
    make_secret,
    make_user,
)
from tests.workspaces.scene import URL, make_scene
from tests.workspaces.stacks.scene import MemoryRepository, StackScene
from trailer.accounts.second_factor import factor_begin
from trailer.errors import Unavailable
from trailer.sealed import SealedField, seal, sealed_fields, unseal
from workspaces.control.compile import document_for
from workspaces.models import EnvVar

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db
STACK = """\
x-trailer: {needs: {postgres: {}}}
services:
  web: {image: app:1}
"""
# Columns that sound like a secret and are none.
NO_SECRETS = re.compile(r"digest$|^csrf|password$|session_key$|_by_token$")


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of everything, made as users make them."""
    scene = make_scene()
    for name in ("one", "two"):
        host = make_host(name)
        scene.create(name=name, secret_env={"PASSWORD": f"env-{name}"})
        make_registry(password=f"registry-{name}")
        make_secret(make_image(kind="build"), value=f"build-{name}")
        factor_begin(actor=make_user(f"user-{name}"))
        stacks = StackScene(scene.owner, host, MemoryRepository(text=STACK))
        stacks.repository_again(monkeypatch)
        stacks.create(
            name=name,
            credential={"token": f"git-{name}"},
            webhook_secret=f"webhook-{name}".ljust(32, "x"),
            secret_variables={"KEY": f"variable-{name}"},
        )
        stacks.work(rounds=4)
        document_for(host.pk, "")


def _sealed() -> Iterator[tuple[type[models.Model], SealedField, list[models.Model]]]:
    for model, field in sealed_fields():
        rows = model._base_manager.exclude(**{field.attname: ""}).order_by("pk")
        yield model, field, list(rows[:2])


@pytest.mark.usefixtures("filled")
def test_a_value_opens_nowhere_but_in_its_own_row_and_column() -> None:
    cells = [(model, field.attname, rows) for model, field, rows in _sealed()]
    assert len(cells) >= 12
    for (_, column, rows), (_, its_column, others) in permutations(cells, 2):
        _refused(rows[0], column, getattr(others[0], its_column), "does not belong there")
    for model, column, (one, two) in cells:
        mine, yours = getattr(one, column), getattr(two, column)
        secrets = {unseal(one, column), unseal(two, column)}
        assert len(secrets) == 2, column
        # Without its beginning it does not pass for a value of an older version.
        _refused(one, column, mine.rpartition(".")[2], "present keys")
        model._base_manager.filter(pk=one.pk).update(**{column: yours})
        model._base_manager.filter(pk=two.pk).update(**{column: mine})
        for row in (one, two):
            row.refresh_from_db()
            said = _refused(row, column, getattr(row, column), "does not belong there")
            assert not any(secret in said for secret in secrets)


def _refused(row: models.Model, column: str, stored: str, sentence: str) -> str:
    before = getattr(row, column)
    setattr(row, column, stored)
    with pytest.raises(Unavailable, match=sentence) as refused:
        unseal(row, column)
    setattr(row, column, before)
    return refused.value.message


@pytest.mark.usefixtures("filled")
def test_nothing_is_encrypted_past_the_columns_for_secrets() -> None:
    """A new column with a Fernet token of its own is found here, and so is a copied one."""
    sealed = {(model, field.attname) for model, field in sealed_fields()}
    found = [
        f"{model._meta.label}.{field.attname}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField | models.JSONField)
        if (model, field.attname) not in sealed
        if "gAAAAA"
        in json.dumps(list(model._base_manager.values_list(field.attname)), default=str)
    ]
    assert found == []


def test_every_column_that_is_named_like_a_secret_is_sealed() -> None:
    named = re.compile(r"secret|token$|password|credential|host_key|private")
    found = [
        f"{model._meta.label}.{field.attname}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField | models.JSONField)
        if named.search(field.attname) and not NO_SECRETS.search(field.attname)
        if not isinstance(field, SealedField)
    ]
    assert found == []


def test_a_swapped_secret_is_answered_with_a_sentence() -> None:
    scene = make_scene()
    one, two = (
        scene.create(name=name, secret_env={"PASSWORD": f"of-{name}"}) for name in ("one", "two")
    )
    stolen = EnvVar.objects.get(workspace=two).secret_token
    EnvVar.objects.filter(workspace=one).update(secret_token=stolen)
    answer: Any = api_client(scene.owner).patch(f"{URL}{one.pk}/", {"cpus": 1}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (503, "secret_out_of_place")
    assert f"workspaces.envvar.secret_token of {one.pk} PASSWORD" in answer.json()["message"]
    assert "of-two" not in answer.content.decode()


def test_only_a_column_for_secrets_is_sealed() -> None:
    with pytest.raises(TypeError, match="no column for secrets"):
        seal(make_user(), "first_name", "x")
