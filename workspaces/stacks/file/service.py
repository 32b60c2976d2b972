"""Reads one service of a stack file."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from agent.protocol.naming import RESERVED_LABEL_PREFIXES
from agent.protocol.spec import GpuSpec, HealthCheckSpec
from workspaces.stacks.file import values
from workspaces.stacks.file.extension import read_extension
from workspaces.stacks.file.mounts import read_mounts
from workspaces.stacks.file.ports import read_ports
from workspaces.stacks.file.types import DEFAULT_NETWORK, Dependency, ServiceSpec
from workspaces.validation.fields import MAX_CPUS, MIN_CPUS, MIN_MEMORY_BYTES, MIN_SHM_BYTES

if TYPE_CHECKING:
    from workspaces.stacks.file.nodes import Item

_KEYS: Final = (
    "image",
    "command",
    "environment",
    "ports",
    "expose",
    "volumes",
    "networks",
    "healthcheck",
    "deploy",
    "mem_limit",
    "cpus",
    "shm_size",
    "depends_on",
    "restart",
    "labels",
    "x-trailer",
)
_INSTEAD: Final = {
    "build": "build the image elsewhere, or as an image of Trailer, and name it in image",
    "container_name": "Trailer names the containers; services reach each other by service name",
    "env_file": "put the values in trailer.vars.yml and use ${config.NAME} in environment",
    "privileged": "a stack never runs with all rights over its host",
    "pull_policy": "use x-trailer.update_policy",
    "stop_grace_period": "use x-trailer.drain_timeout",
    "secrets": "use ${secret.NAME} in environment",
    "scale": "a service is one container",
}
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_HEALTH_KEYS: Final = ("test", "interval", "timeout", "retries", "start_period", "disable")
_CONDITIONS: Final = ("service_started", "service_healthy")
_MAX_ENV_NAME: Final = 255


def check_name(name: str, item: Item) -> None:
    if not _NAME.fullmatch(name) or name.endswith("-next"):
        raise item.wrong(
            "a name is a-z, 0-9 and inner hyphens, at most 40 characters, and may not end in -next"
        )


def read_service(name: str, item: Item) -> ServiceSpec:
    check_name(name, item)
    known = item.known(_KEYS, _INSTEAD)
    if "image" not in known:
        raise item.wrong("needs image")
    image = known["image"].text().strip()
    if not image or any(char.isspace() for char in image):
        raise known["image"].wrong("must name an image, for example nginx:1.27")
    if "restart" in known:
        known["restart"].choice(("unless-stopped",))
    ports = read_ports(known["ports"]) if "ports" in known else ()
    extension = read_extension(known.get("x-trailer"), ports, known.get("expose"))
    cpus, memory_bytes, gpus = _limits(known)
    return ServiceSpec(
        name=name,
        image=image,
        command=_command(known["command"]) if "command" in known else (),
        environment=_environment(known["environment"]) if "environment" in known else {},
        ports=ports,
        mounts=read_mounts(known["volumes"]) if "volumes" in known else (),
        networks=_networks(known["networks"]) if "networks" in known else (DEFAULT_NETWORK,),
        health_check=_health_check(known["healthcheck"]) if "healthcheck" in known else None,
        cpus=cpus,
        memory_bytes=memory_bytes,
        gpus=gpus,
        shm_bytes=values.size(known["shm_size"], least=MIN_SHM_BYTES)
        if "shm_size" in known
        else None,
        depends_on=_depends_on(known["depends_on"]) if "depends_on" in known else (),
        labels=_labels(known["labels"]) if "labels" in known else {},
        domains=extension.domains,
        update_policy=extension.update_policy,
        startup_timeout=extension.startup_timeout,
        drain_timeout=extension.drain_timeout,
        shared_volumes=extension.shared_volumes,
    )


def _command(item: Item) -> tuple[str, ...]:
    if item.is_null:
        return ()
    if item.is_list:
        return item.texts()
    try:
        return tuple(shlex.split(item.text()))
    except ValueError as error:
        raise item.wrong("has a quote that is not closed") from error


def _pairs(item: Item) -> dict[str, tuple[str, Item]]:
    """Both forms that Compose knows: a map, or a list of NAME=value."""
    if item.is_null:
        return {}
    if not item.is_list:
        return {name: (_value(member), member) for name, member in item.members().items()}
    pairs: dict[str, tuple[str, Item]] = {}
    for entry in item.entries():
        name, equals, value = entry.text().partition("=")
        if not equals:
            raise entry.wrong(f"{name[:80]} has no value; write {name[:80]}=value")
        if name in pairs:
            raise entry.wrong(f"{name[:80]} is listed twice")
        pairs[name] = (value, entry)
    return pairs


def _value(item: Item) -> str:
    if item.is_null:
        raise item.wrong('has no value; write "" if it is meant to be empty')
    return item.text()


def _environment(item: Item) -> dict[str, str]:
    pairs = _pairs(item)
    for name, (_, member) in pairs.items():
        if not name or len(name) > _MAX_ENV_NAME or "=" in name or "$" in name:
            raise member.wrong("is not the name of an environment variable")
        item.reading.lines[f"{item.path}.{name}"] = member.line
    return {name: value for name, (value, _) in pairs.items()}


def _labels(item: Item) -> dict[str, str]:
    pairs = _pairs(item)
    for name, (_, member) in pairs.items():
        if not name or name.startswith(RESERVED_LABEL_PREFIXES):
            raise member.wrong(
                f"a label may not be empty or begin with {' or '.join(RESERVED_LABEL_PREFIXES)}"
            )
        item.reading.lines[f"{item.path}.{name}"] = member.line
    return {name: value for name, (value, _) in pairs.items()}


def _networks(item: Item) -> tuple[str, ...]:
    if item.is_list:
        names = item.texts()
    else:
        members = item.members()
        for member in members.values():
            if not member.is_null:
                member.known(())
        names = tuple(members)
    if not names:
        raise item.wrong("names no network; remove the key to join the stack's own")
    return tuple(sorted(set(names)))


def _depends_on(item: Item) -> tuple[Dependency, ...]:
    if item.is_list:
        return tuple(Dependency(service=name) for name in sorted(set(item.texts())))
    found = []
    for name, member in sorted(item.members().items()):
        known = {} if member.is_null else member.known(("condition",))
        condition = known["condition"].choice(_CONDITIONS) if "condition" in known else ""
        found.append(Dependency(service=name, healthy=condition == "service_healthy"))
    return tuple(found)


def _health_check(item: Item) -> HealthCheckSpec | None:
    known = item.known(_HEALTH_KEYS)
    if "disable" in known and known["disable"].boolean():
        return HealthCheckSpec(test=("NONE",))
    if "test" not in known:
        raise item.wrong("needs test")
    test = known["test"].texts() if known["test"].is_list else ("CMD-SHELL", known["test"].text())
    kind, rest = (test[0], test[1:]) if test else ("", ())
    fits = {"NONE": not rest, "CMD": bool(rest), "CMD-SHELL": len(rest) == 1}
    if not fits.get(kind, False):
        raise known["test"].wrong(
            "must be a command line, or a list that begins with CMD, CMD-SHELL or NONE"
        )
    return HealthCheckSpec(
        test=test,
        interval=values.seconds(known["interval"]) if "interval" in known else 30.0,
        timeout=values.seconds(known["timeout"]) if "timeout" in known else 30.0,
        retries=known["retries"].integer(1, 1000) if "retries" in known else 3,
        start_period=values.seconds(known["start_period"]) if "start_period" in known else 0.0,
    )


def _limits(known: dict[str, Item]) -> tuple[float | None, int | None, GpuSpec | None]:
    deploy = known["deploy"].known(("resources",)) if "deploy" in known else {}
    resources = (
        deploy["resources"].known(("limits", "reservations")) if "resources" in deploy else {}
    )
    limits = resources["limits"].known(("cpus", "memory")) if "limits" in resources else {}
    for short, long in (("cpus", "cpus"), ("mem_limit", "memory")):
        if short in known and long in limits:
            raise known[short].wrong(f"is set by deploy.resources.limits.{long} too; keep one")
    cpus = known.get("cpus") or limits.get("cpus")
    memory = known.get("mem_limit") or limits.get("memory")
    reservations = (
        resources["reservations"].known(("devices",)) if "reservations" in resources else {}
    )
    return (
        values.number(cpus, least=MIN_CPUS, most=MAX_CPUS) if cpus else None,
        values.size(memory, least=MIN_MEMORY_BYTES) if memory else None,
        _gpus(reservations["devices"]) if "devices" in reservations else None,
    )


def _gpus(item: Item) -> GpuSpec | None:
    devices = item.entries()
    if len(devices) != 1:
        raise item.wrong("must hold one entry, for GPUs")
    known = devices[0].known(("driver", "count", "device_ids", "capabilities"))
    if "driver" in known:
        known["driver"].choice(("nvidia",))
    if "capabilities" not in known or known["capabilities"].texts() != ("gpu",):
        raise devices[0].wrong("needs capabilities: [gpu]")
    if ("count" in known) == ("device_ids" in known):
        raise devices[0].wrong("needs either count or device_ids")
    if "count" in known:
        return GpuSpec(count=known["count"].integer(1, 1024))
    device_ids = known["device_ids"].texts()
    if not device_ids or not all(device_ids):
        raise known["device_ids"].wrong("must name at least one GPU")
    return GpuSpec(device_ids=tuple(sorted(set(device_ids))))
