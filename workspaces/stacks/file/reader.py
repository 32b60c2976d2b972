"""Reads a stack file: the Compose file's top level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workspaces.stacks.file.errors import StackFileError
from workspaces.stacks.file.needs import read_needs
from workspaces.stacks.file.nodes import Reading
from workspaces.stacks.file.order import start_order
from workspaces.stacks.file.service import check_name, read_service
from workspaces.stacks.file.types import (
    DEFAULT_NETWORK,
    NetworkSpec,
    ServiceSpec,
    StackFile,
    VolumeSpec,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workspaces.stacks.file.nodes import Item
    from workspaces.stacks.file.types import NeedSpec

# In this order: the first that is there is read.
STACK_FILE_NAMES: Final = ("trailer.yml", "compose.yaml", "docker-compose.yml")
_TOP: Final = ("name", "version", "services", "volumes", "networks", "x-trailer")
_MAX_SERVICES: Final = 64
_INSTEAD: Final = {
    "secrets": "put the value in trailer.vars.yml and use ${secret.NAME} in environment",
    "configs": "put the value in trailer.vars.yml and use ${config.NAME} in environment",
    "include": "write all services of a stack in one file",
}


def read_stack_file(text: str, file_name: str) -> StackFile:
    """Refuses with every unsupported key and every wrong value by name and line."""
    reading = Reading(file_name)
    top = reading.root(text).known(_TOP, _INSTEAD)
    own = top["x-trailer"].known(("needs",)) if "x-trailer" in top else {}
    needs = read_needs(own["needs"]) if "needs" in own else ()
    volumes = _volumes(top["volumes"]) if "volumes" in top else {}
    networks = _networks(top["networks"]) if "networks" in top else {}
    if "services" not in top:
        reading.problems.append(f"{file_name} has no services. Add at least one.")
        reading.finish()
    services = _services(top["services"])
    reading.finish()
    _check_together(reading, services, needs, volumes, networks)
    return StackFile(
        file_name=file_name,
        services=services,
        needs=needs,
        volumes=volumes,
        networks=networks,
        lines=reading.lines,
    )


def _services(item: Item) -> tuple[ServiceSpec, ...]:
    members = item.members()
    if not members:
        raise item.wrong("names no service; add at least one")
    if len(members) > _MAX_SERVICES:
        raise item.wrong(f"has more than {_MAX_SERVICES} services")
    services = []
    for name, member in members.items():
        try:
            services.append(read_service(name, member))
        except StackFileError as error:
            item.reading.problems.extend(error.sentences)
    return tuple(services)


def _volumes(item: Item) -> dict[str, VolumeSpec]:
    return {
        key: VolumeSpec(
            key=key, external_name=_external_name(key, member, ("external", "name"))[0]
        )
        for key, member in ({} if item.is_null else item.members()).items()
    }


def _networks(item: Item) -> dict[str, NetworkSpec]:
    networks = {}
    for key, member in ({} if item.is_null else item.members()).items():
        name, known = _external_name(key, member, ("external", "name", "driver", "internal"))
        if "driver" in known:
            known["driver"].choice(("bridge",))
        internal = "internal" in known and known["internal"].boolean()
        if name and internal:
            raise member.wrong("an external network is as it is; remove internal")
        networks[key] = NetworkSpec(key=key, external_name=name, internal=internal)
    return networks


def _external_name(key: str, member: Item, keys: Sequence[str]) -> tuple[str, dict[str, Item]]:
    """What exists already is named; what the stack owns gets its name from Trailer."""
    check_name(key, member)
    known = {} if member.is_null else member.known(keys)
    external = "external" in known and known["external"].boolean()
    if "name" in known and not external:
        raise known["name"].wrong(
            "only an external one may be named; what the stack owns is named by Trailer"
        )
    name = known["name"].plain_text() if "name" in known else key
    return (name if external else ""), known


def _check_together(
    reading: Reading,
    services: Sequence[ServiceSpec],
    needs: Sequence[NeedSpec],
    volumes: dict[str, VolumeSpec],
    networks: dict[str, NetworkSpec],
) -> None:
    """Every name that is used must be there, and stand for one thing."""
    names = {service.name for service in services}

    def say(key: str, sentence: str) -> None:
        line = reading.lines.get(key, 1)
        reading.problems.append(f"{reading.file_name}, line {line}: {key}: {sentence}.")

    for need in needs:
        if need.kind in names:
            say(f"services.{need.kind}", "is the name of a need already; rename the service")
    for service in services:
        key = f"services.{service.name}"
        for needed in service.depends_on:
            if needed.service not in names:
                say(f"{key}.depends_on", f"there is no service {needed.service}")
        for mount in service.mounts:
            if mount.volume and mount.volume not in volumes:
                say(
                    f"{key}.volumes",
                    f"there is no volume {mount.volume}; add it to the top-level volumes",
                )
        for network in service.networks:
            if network != DEFAULT_NETWORK and network not in networks:
                say(
                    f"{key}.networks",
                    f"there is no network {network}; add it to the top-level networks",
                )
    reading.finish()
    start_order(services)
