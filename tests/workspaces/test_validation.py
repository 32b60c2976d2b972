"""Validation of the writable fields: what is refused, under which name, and what is normalised."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from agent.protocol.spec import HealthCheckSpec, PortSpec
from tests.workspaces.bad_fields import BAD_FIELDS, UUID_TEXT
from trailer.errors import Invalid
from workspaces.fields import MountFields, WorkspaceFields, body_of
from workspaces.gpus import GpuWish
from workspaces.validation.fields import WRITABLE, fields_for_create, fields_for_update

REQUIRED: dict[str, Any] = {"name": "box", "host": UUID_TEXT, "image": UUID_TEXT}


def created(**fields: Any) -> WorkspaceFields:
    return fields_for_create({**REQUIRED, **fields})


@pytest.mark.parametrize(("field", "value", "where"), BAD_FIELDS)
def test_a_bad_value_is_refused_with_a_sentence(field: str, value: Any, where: str) -> None:
    with pytest.raises(Invalid) as caught:
        created(**{field: value})
    assert list(caught.value.fields) == [where]
    assert caught.value.message == caught.value.fields[where][0]
    assert caught.value.message.endswith(".")
    assert caught.value.status == 400


def test_every_writable_field_is_in_the_table_of_bad_values() -> None:
    assert {field for field, _, _ in BAD_FIELDS} >= WRITABLE


def test_all_bad_fields_are_told_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        fields_for_create({"name": "B", "cpus": 0, "color": 1})
    assert set(caught.value.fields) == {"name", "host", "image", "cpus", "color"}


def test_an_unknown_field_is_named_in_the_sentence() -> None:
    with pytest.raises(Invalid) as caught:
        created(status="running")
    assert "“status”" in caught.value.message


def test_a_size_that_is_too_small_is_refused_in_the_unit_that_people_use() -> None:
    with pytest.raises(Invalid, match=r"memory_bytes must be at least 6 MiB \(6291456 bytes\)"):
        created(memory_bytes=1)


def test_what_is_left_out_gets_its_default() -> None:
    fields = created()
    assert (fields.desired_state, fields.startup_timeout, fields.drain_timeout) == (
        "running",
        60,
        10,
    )
    assert fields.env == {}
    assert fields.gpus is None


@pytest.mark.parametrize("name", ["a", "0", "a" * 63, "a--b", "box-", "9-lives"])
def test_a_name_of_small_letters_digits_and_hyphens_is_taken(name: str) -> None:
    assert created(name=name).name == name


def test_defaults_of_parts_are_filled_in() -> None:
    fields = created(
        ports=[{"container_port": 80}],
        mounts=[{"volume": UUID_TEXT, "target": "//data//x/"}],
        health_check={"test": ["CMD-SHELL", "true"]},
        urls=[{"subdomain": "WWW", "domain": "Example.COM", "port": 80}],
    )
    assert fields.ports == (PortSpec(container_port=80),)
    assert fields.mounts == (MountFields(volume_id=UUID(UUID_TEXT), target="/data/x"),)
    assert fields.health_check == HealthCheckSpec(test=("CMD-SHELL", "true"))
    assert (fields.urls[0].subdomain, fields.urls[0].domain) == ("www", "example.com")
    assert fields.urls[0].auth == "users"


@pytest.mark.parametrize("empty", [None, {}, {"count": 0}, {"device_ids": []}])
def test_asking_for_no_gpu_is_the_same_as_not_asking(empty: Any) -> None:
    assert created(gpus=empty).gpus is None


def test_gpu_ids_have_no_order() -> None:
    assert created(gpus={"device_ids": ["b", "a", "b"]}).gpus == GpuWish(device_ids=("a", "b"))


@pytest.mark.parametrize("field", ["cpus", "memory_bytes", "shm_bytes", "idle_stop_minutes"])
def test_null_takes_a_limit_away(field: str) -> None:
    old = created(cpus=1, memory_bytes=2**30, shm_bytes=2**20, idle_stop_minutes=5)
    assert getattr(fields_for_update(old, {field: None}), field) is None


@pytest.mark.parametrize(
    "line", ["* * * * *", "*/5 0-6/2 1,15 JAN-mar mon-fri", "0 8 * * 0,7", "59 23 31 12 6"]
)
def test_cron_lines_are_taken(line: str) -> None:
    assert created(schedule={"start": line}).schedule == {"start": line.lower()}


def test_the_same_host_port_on_two_addresses_is_taken() -> None:
    ports = [
        {"container_port": 80, "host_port": 80, "host_ip": "10.0.0.1"},
        {"container_port": 80, "host_port": 80, "host_ip": "10.0.0.2"},
        {"container_port": 80, "host_port": 80, "protocol": "udp"},
    ]
    assert len(created(ports=ports).ports) == 3


def test_an_update_keeps_what_it_does_not_name() -> None:
    old = created(env={"A": "1"}, cpus=2)
    new = fields_for_update(old, {"cpus": 1})
    assert (new.env, new.cpus) == ({"A": "1"}, 1)


def test_a_workspace_can_not_move_to_another_host() -> None:
    with pytest.raises(Invalid) as caught:
        fields_for_update(created(), {"host": "11111111-0000-4000-8000-000000000000"})
    assert "Clone" in caught.value.fields["host"][0]


def test_naming_the_same_host_again_is_no_move() -> None:
    old = created()
    assert fields_for_update(old, {"host": UUID_TEXT}) == old


def test_null_keeps_a_stored_secret_and_a_missing_key_drops_it() -> None:
    old = created(secret_env={"A": "a", "B": "b", "C": "c"})
    new = fields_for_update(old, {"secret_env": {"A": None, "B": "new"}})
    assert new.secret_env == {"A": "a", "B": "new"}


def test_null_without_a_stored_secret_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        fields_for_update(created(secret_env={"A": "a"}), {"secret_env": {"X": None}})
    assert list(caught.value.fields) == ["secret_env.X"]


def test_a_name_is_either_plain_or_secret() -> None:
    with pytest.raises(Invalid):
        created(env={"A": "1"}, secret_env={"A": "2"})
    with pytest.raises(Invalid):
        fields_for_update(created(env={"A": "1"}), {"secret_env": {"A": "2"}})
    moved = fields_for_update(created(env={"A": "1"}), {"env": {}, "secret_env": {"A": "2"}})
    assert (moved.env, moved.secret_env) == ({}, {"A": "2"})


def test_what_is_stored_reads_back_as_the_same_fields() -> None:
    fields = created(
        ports=[{"container_port": 80, "host_port": 8080, "host_ip": "::1"}],
        mounts=[{"volume": UUID_TEXT, "target": "/data", "read_only": True}],
        networks=[UUID_TEXT],
        gpus={"count": 1},
        health_check={"test": ["NONE"]},
        schedule={"stop": "0 0 * * *"},
        cpus=0.25,
    )
    body = {**body_of(fields), "secret_env": {}}
    assert fields_for_create(body) == fields
    assert set(body) == WRITABLE


def test_secrets_are_left_out_of_the_text_form() -> None:
    assert "hush" not in repr(created(secret_env={"A": "hush"}))
