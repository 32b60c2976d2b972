"""From a caller's raw object to clean fields: one cleaner per field, all errors at once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent.protocol.naming import RESERVED_LABEL_PREFIXES
from trailer.errors import Invalid
from trailer.validation import check_one_line, check_paragraphs
from workspaces.choices import DesiredState
from workspaces.fields import WorkspaceFields
from workspaces.validation.parts import (
    clean_gpus,
    clean_health_check,
    clean_mounts,
    clean_ports,
    clean_urls,
)
from workspaces.validation.scalars import (
    boolean,
    choice,
    entries,
    identifier,
    integer,
    mapping,
    number,
    text,
)
from workspaces.validation.schedule import clean_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from uuid import UUID

MIN_MEMORY_BYTES: Final = 6 * 1024 * 1024
MIN_SHM_BYTES: Final = 64 * 1024
MIN_CPUS: Final = 0.01
MAX_CPUS: Final = 10_000
MAX_TIMEOUT: Final = 3600
MAX_IDLE_MINUTES: Final = 100_000
NAME_PATTERN: Final = r"[a-z0-9][a-z0-9-]{0,62}"
REQUIRED: Final = ("name", "host", "image")

_NAME: Final = re.compile(NAME_PATTERN)
# Container names that the host's agent and its replacement use for themselves.
_RESERVED_NAMES: Final = frozenset({"agent", "agent-next", "agent-previous", "agent-overseer"})
_MAX_ENV_NAME: Final = 255
_UNKNOWN: Final = "There is no field “{}”, or it can't be written."


def fields_for_create(data: Mapping[str, Any]) -> WorkspaceFields:
    missing = {name: [f"{name} is required."] for name in REQUIRED if data.get(name) is None}
    values = _clean(data, kept_secrets={}, errors=missing)
    return _checked(WorkspaceFields(**values))


def fields_for_update(old: WorkspaceFields, data: Mapping[str, Any]) -> WorkspaceFields:
    """`data` holds only what changes; a null inside secret_env keeps that key's stored value."""
    values = _clean(data, kept_secrets=old.secret_env, errors={})
    if values.get("host", old.host) != old.host:
        raise Invalid.field(
            "host", "A workspace stays on its host. Clone it to the other host instead."
        )
    return _checked(replace(old, **values))


def check_known(data: Mapping[str, Any], known: Collection[str]) -> None:
    """For the small bodies of actions; a misspelt key is named, never silently lost."""
    unknown = {name: [_UNKNOWN.format(name)] for name in sorted(set(data) - set(known))}
    if unknown:
        raise _all(unknown)


def _clean(
    data: Mapping[str, Any], *, kept_secrets: Mapping[str, str], errors: dict[str, list[str]]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name in errors:
            continue
        try:
            if name == "secret_env":
                values[name] = _secret_env(value, kept_secrets)
            elif name in _CLEANERS:
                values[name] = _CLEANERS[name](value, name)
            else:
                raise Invalid.field(name, _UNKNOWN.format(name))
        except Invalid as error:
            errors |= error.fields
    if errors:
        raise _all(errors)
    return values


def _checked(fields: WorkspaceFields) -> WorkspaceFields:
    both = sorted(set(fields.env) & set(fields.secret_env))
    if both:
        raise Invalid.field(
            "secret_env", f"{both[0]} is in env too. Keep each name in one of the two."
        )
    return fields


def _all(errors: dict[str, list[str]]) -> Invalid:
    first = next(iter(errors.values()))[0]
    return Invalid(first, fields=errors)


def clean_name(value: Any, path: str) -> str:
    name = text(value, path)
    if not _NAME.fullmatch(name):
        raise Invalid.field(
            path,
            "The name must begin with a letter or digit and hold only a-z, 0-9 and hyphens, "
            "at most 63 characters.",
        )
    if name in _RESERVED_NAMES:
        raise Invalid.field(path, f"The name {name} is kept for the host's agent. Take another.")
    return name


def _description(value: Any, path: str) -> str:
    description = text(value, path)
    check_paragraphs(description, field=path, noun="The description")
    return description


def _command(value: Any, path: str) -> tuple[str, ...]:
    return tuple(text(item, f"{path}.{n}") for n, item in enumerate(entries(value, path)))


def _env(value: Any, path: str) -> dict[str, str]:
    given = mapping(value, path)
    return {_env_name(name, path): text(item, f"{path}.{name}") for name, item in given.items()}


def _secret_env(value: Any, kept: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for raw, item in mapping(value, "secret_env").items():
        name = _env_name(raw, "secret_env")
        if item is not None:
            values[name] = text(item, f"secret_env.{name}")
        elif name in kept:
            values[name] = kept[name]
        else:
            raise Invalid.field(
                f"secret_env.{name}", f"secret_env.{name} has no stored value yet. Give one."
            )
    return values


def _env_name(value: str, path: str) -> str:
    name = text(value, path, max_length=_MAX_ENV_NAME)
    if not name or "=" in name:
        raise Invalid.field(path, f"Names in {path} may not be empty or contain '='.")
    check_one_line(name, field=path, noun=f"A name in {path}")
    return name


def _labels(value: Any, path: str) -> dict[str, str]:
    labels = {}
    for raw, item in mapping(value, path).items():
        key = text(raw, path, max_length=_MAX_ENV_NAME)
        if not key:
            raise Invalid.field(path, "A label's name may not be empty.")
        check_one_line(key, field=path, noun="A label's name")
        if key.lower().startswith(RESERVED_LABEL_PREFIXES):
            raise Invalid.field(
                path,
                f"The label {key} is reserved: labels may not start with trailer. or traefik.",
            )
        labels[key] = text(item, f"{path}.{key}")
    return labels


def _networks(value: Any, path: str) -> frozenset[UUID]:
    return frozenset(
        identifier(item, f"{path}.{n}") for n, item in enumerate(entries(value, path))
    )


def _optional(clean: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, path: None if value is None else clean(value, path)


def _whole(least: int, most: int | None = None) -> Callable[[Any, str], int]:
    if most is None:
        return lambda value, path: integer(value, path, least=least)
    return lambda value, path: integer(value, path, least=least, most=most)


_CLEANERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "name": clean_name,
    "description": _description,
    "host": identifier,
    "image": identifier,
    "desired_state": lambda value, path: choice(value, path, DesiredState.values),
    "command": _command,
    "env": _env,
    "cpus": _optional(lambda value, path: number(value, path, least=MIN_CPUS, most=MAX_CPUS)),
    "memory_bytes": _optional(_whole(MIN_MEMORY_BYTES)),
    "shm_bytes": _optional(_whole(MIN_SHM_BYTES)),
    "gpus": clean_gpus,
    "nested_virtualization": boolean,
    "ports": clean_ports,
    "mounts": clean_mounts,
    "networks": _networks,
    "urls": clean_urls,
    "health_check": clean_health_check,
    "startup_timeout": _whole(0, MAX_TIMEOUT),
    "drain_timeout": _whole(0, MAX_TIMEOUT),
    "shared_volumes": boolean,
    "idle_stop_minutes": _optional(_whole(1, MAX_IDLE_MINUTES)),
    "schedule": clean_schedule,
    "labels": _labels,
}
WRITABLE: Final = frozenset({*_CLEANERS, "secret_env"})
