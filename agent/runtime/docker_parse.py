"""The engine's JSON to the agent's types; pure, so that every odd answer can be a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent.observed import (
    Attachment,
    ObservedContainer,
    ObservedImage,
    ObservedMount,
    ObservedNetwork,
    ObservedVolume,
)
from agent.protocol.session import EngineInfo
from agent.protocol.spec import EVERY_IPV4
from agent.runtime.port import ContainerStats, EngineEvent

Json = Mapping[str, Any]
_BRIDGE_NAME = "com.docker.network.bridge.name"


def listed_container(raw: Json) -> ObservedContainer:
    """From the list endpoint: good enough for containers that are not ours."""
    names = sorted(raw.get("Names") or [], key=len)
    settings = raw.get("NetworkSettings") or {}
    return ObservedContainer(
        id=raw["Id"],
        name=(names[0] if names else "").lstrip("/"),
        state=str(raw.get("State") or ""),
        image_id=str(raw.get("ImageID") or ""),
        labels=raw.get("Labels") or {},
        attachments=_attachments(settings.get("Networks") or {}, {}),
        inspected=False,
    )


def list_fingerprint(raw: Json) -> tuple[object, ...]:
    """Changes whenever an inspection would differ in a way the list can show."""
    status = str(raw.get("Status") or "")
    health = status.partition("(")[2]
    networks = (raw.get("NetworkSettings") or {}).get("Networks") or {}
    ids = tuple(sorted(str(place.get("NetworkID")) for place in networks.values()))
    return (tuple(raw.get("Names") or ()), raw.get("State"), raw.get("ImageID"), health, ids)


def inspected_container(raw: Json, network_ids: Mapping[str, str]) -> ObservedContainer:
    """`network_ids` maps names to ids: a container that never ran knows its network by name."""
    state, host = raw.get("State") or {}, raw.get("HostConfig") or {}
    health = state.get("Health") or {}
    settings = raw.get("NetworkSettings") or {}
    started = str(state.get("StartedAt") or "")
    return ObservedContainer(
        id=raw["Id"],
        name=str(raw.get("Name") or "").lstrip("/"),
        state=_state(state),
        image_id=str(raw.get("Image") or ""),
        hostname=str((raw.get("Config") or {}).get("Hostname") or ""),
        labels=(raw.get("Config") or {}).get("Labels") or {},
        exit_code=state.get("ExitCode"),
        error=str(state.get("Error") or ""),
        oom_killed=bool(state.get("OOMKilled")),
        started_at="" if started.startswith("0001-") else started,
        restart_count=int(raw.get("RestartCount") or 0),
        pid=int(state.get("Pid") or 0),
        health=_health(health),
        health_output=_health_output(health),
        nano_cpus=int(host.get("NanoCpus") or 0),
        memory_bytes=int(host.get("Memory") or 0),
        restart_policy=str((host.get("RestartPolicy") or {}).get("Name") or "no"),
        attachments=_attachments(settings.get("Networks") or {}, network_ids),
        mounts=_mounts(raw.get("Mounts") or ()),
        ipv4_only_ports=_ipv4_only_ports(settings.get("Ports") or {}),
    )


def _ipv4_only_ports(bindings: Mapping[str, Iterable[Json] | None]) -> frozenset[tuple[int, str]]:
    """Where no address was asked for, some engines bind 0.0.0.0 alone and others `::` as well."""
    found = set()
    for port, places in bindings.items():
        if {str(place.get("HostIp") or "") for place in places or ()} == {EVERY_IPV4}:
            number, _, protocol = port.partition("/")
            found.add((int(number), protocol))
    return frozenset(found)


def _mounts(mounts: Iterable[Json]) -> tuple[ObservedMount, ...]:
    """All but those in memory, which are the container's own. What the engine does not call
    read-only counts as writable."""
    found = [
        ObservedMount(
            target=str(raw.get("Destination") or ""),
            kind=str(raw.get("Type") or ""),
            source=str(raw.get("Name") or raw.get("Source") or ""),
            read_only=raw.get("RW") is False,
        )
        for raw in mounts
        if raw.get("Type") != "tmpfs"
    ]
    return tuple(sorted(found, key=lambda mount: mount.target))


def with_log_tail(container: ObservedContainer, tail: str) -> ObservedContainer:
    return replace(container, log_tail=tail[-2000:])


def _state(state: Json) -> str:
    for flag, name in (("Dead", "dead"), ("Restarting", "restarting"), ("Paused", "paused")):
        if state.get(flag):
            return name
    return str(state.get("Status") or "")


def _health(health: Json) -> str:
    status = str(health.get("Status") or "")
    return "" if status == "none" else status


def _health_output(health: Json) -> str:
    log = health.get("Log") or []
    return str(log[-1].get("Output") or "").strip()[-1000:] if log else ""


def _attachments(networks: Json, network_ids: Mapping[str, str]) -> tuple[Attachment, ...]:
    places = []
    known = {engine_id: label for label, engine_id in network_ids.items()}
    for name, raw in sorted(networks.items()):
        place = raw or {}
        network_id = place.get("NetworkID") or network_ids.get(name) or name
        places.append(
            Attachment(
                network_id=network_id,
                network_name=known.get(network_id, name),
                aliases=tuple(sorted(place.get("Aliases") or ())),
                address=place.get("IPAddress") or "",
            )
        )
    return tuple(places)


def network(raw: Json) -> ObservedNetwork:
    return ObservedNetwork(
        id=raw["Id"],
        name=raw["Name"],
        driver=str(raw.get("Driver") or ""),
        labels=raw.get("Labels") or {},
        subnets=_subnets(raw),
        interface=bridge_name(raw),
    )


def _subnets(raw: Json) -> tuple[str, ...]:
    pools = (raw.get("IPAM") or {}).get("Config") or ()
    return tuple(sorted(str(pool["Subnet"]) for pool in pools if pool.get("Subnet")))


def bridge_name(raw: Json) -> str:
    """Of a network with driver bridge; others have no interface of their own on the machine."""
    if raw.get("Driver") != "bridge":
        return ""
    given = (raw.get("Options") or {}).get(_BRIDGE_NAME)
    return str(given or f"br-{raw['Id'][:12]}")


def volume(raw: Json) -> ObservedVolume:
    return ObservedVolume(name=raw["Name"], labels=raw.get("Labels") or {})


def listed_image(raw: Json) -> ObservedImage:
    return ObservedImage(
        id=raw["Id"],
        tags=tuple(tag for tag in raw.get("RepoTags") or () if tag != "<none>:<none>"),
        digests=tuple(d for d in raw.get("RepoDigests") or () if not d.startswith("<none>")),
        size_bytes=int(raw.get("Size") or 0),
        labels=raw.get("Labels") or (raw.get("Config") or {}).get("Labels") or {},
    )


def event(raw: Json) -> EngineEvent:
    actor = raw.get("Actor") or {}
    attributes = actor.get("Attributes") or {}
    kind, engine_id = str(raw.get("Type") or ""), str(actor.get("ID") or raw.get("id") or "")
    action = str(raw.get("Action") or raw.get("status") or "").partition(":")[0]
    return EngineEvent(
        kind=kind,
        action=action,
        id=engine_id,
        container_id=engine_id if kind == "container" else str(attributes.get("container") or ""),
        workspace_id=str(attributes.get("trailer.workspace") or ""),
        at=int(raw.get("timeNano") or 0),
        exit_code=_number(attributes.get("exitCode")),
        signal=_number(attributes.get("signal")),
    )


def _number(text: object) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None


def container_stats(raw: Json) -> ContainerStats:
    """Like `docker stats` counts: file cache that can be dropped is no use of memory."""
    memory = raw.get("memory_stats") or {}
    details = memory.get("stats") or {}
    cache = details.get("total_inactive_file", details.get("inactive_file", 0))
    used = memory.get("usage")
    networks = (raw.get("networks") or {}).values()
    return ContainerStats(
        cpu_seconds=_cpu_seconds(raw),
        memory_bytes=None if used is None else max(0, int(used) - int(cache)),
        disk_read_bytes=_block_bytes(raw, "read"),
        disk_write_bytes=_block_bytes(raw, "write"),
        network_rx_bytes=sum(int(n.get("rx_bytes") or 0) for n in networks),
        network_tx_bytes=sum(int(n.get("tx_bytes") or 0) for n in networks),
        processes=(raw.get("pids_stats") or {}).get("current"),
    )


def _cpu_seconds(raw: Json) -> float | None:
    used = ((raw.get("cpu_stats") or {}).get("cpu_usage") or {}).get("total_usage")
    return None if used is None else int(used) / 1e9


def _block_bytes(raw: Json, direction: str) -> int:
    rows = (raw.get("blkio_stats") or {}).get("io_service_bytes_recursive") or ()
    return sum(int(r.get("value") or 0) for r in rows if r.get("op", "").lower() == direction)


def engine_info(info: Json, version: Json) -> EngineInfo:
    return EngineInfo(
        id=str(info.get("ID") or ""),
        name=str(info.get("Name") or ""),
        version=str(version.get("Version") or ""),
        api_version=str(version.get("ApiVersion") or ""),
        runtimes=tuple(sorted(info.get("Runtimes") or {})),
        storage_driver=str(info.get("Driver") or ""),
        live_restore=bool(info.get("LiveRestoreEnabled")),
    )
