"""A container's description turned into the request that makes another like it; pure.

What merely came from the old image is left out, so that the new image's own values count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent.overseer.traefik import derived_labels, is_derived
from agent.protocol.naming import (
    LABEL_AGENT,
    LABEL_AGENT_ROLE,
    LABEL_CREATED_AT,
    LABEL_OVERSEER,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    Raw = Mapping[str, Any]

# Spent at the first start.
_FORGOTTEN_ENV: Final = frozenset({"TRAILER_ENROLMENT_TOKEN"})
_OWN_LABELS: Final = frozenset({LABEL_CREATED_AT, LABEL_OVERSEER, LABEL_AGENT_ROLE})
# Copied when they differ from the image's.
_INHERITED: Final = ("Cmd", "Entrypoint", "User", "WorkingDir", "StopSignal", "Healthcheck")
_KEPT: Final = ("Domainname", "Tty", "OpenStdin", "StopTimeout", "Shell")
_NO_ADDRESS: Final = ("IPAMConfig", "Links", "Aliases", "MacAddress", "DriverOpts")


def environment_of(config: Raw) -> dict[str, str]:
    pairs = (text.partition("=") for text in config.get("Env") or ())
    return {name: value for name, _, value in pairs}


def agent_config(
    container: Raw, image: Raw, *, reference: str, created_at: str, made_by: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The new agent like the old one, and the networks it joins after it was made."""
    config = _like(container, image, reference)
    config["Labels"] = _labels(container, image) | {
        LABEL_AGENT: "true",
        LABEL_CREATED_AT: created_at,
        LABEL_OVERSEER: made_by,
    }
    exposed = _without(
        container["Config"].get("ExposedPorts"), _image_config(image), "ExposedPorts"
    )
    if exposed:
        config["ExposedPorts"] = exposed
    config["HostConfig"] = _host_config(container)
    networks = _networks(container)
    first = _primary(container, networks)
    if first:
        config["NetworkingConfig"] = {"EndpointsConfig": {first: networks.pop(first)}}
    return config, networks


def next_config(container: Raw, image: Raw, *, reference: str) -> dict[str, Any]:
    """The trial: no ports, no addresses, none of the agent's labels, and nothing reconciled."""
    return _beside(container, image, reference, command="validate", role="next", restart="no")


def overseer_config(container: Raw, image: Raw) -> dict[str, Any]:
    """Of the very image that runs now, which is known to work. The engine starts it again after
    any end but a good one, and after its own."""
    return _beside(
        container,
        image,
        str(container["Image"]),
        command="overseer",
        role="overseer",
        restart="on-failure",
    )


def guard_config(container: Raw, action: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """For a moment in the machine's own network, with the one right to change its packet filter:
    no folders, no socket, no environment of the agent's."""
    own = container["Config"]
    return {
        "Image": str(container["Image"]),
        "Entrypoint": own.get("Entrypoint"),
        "WorkingDir": own.get("WorkingDir") or "",
        "Cmd": ["guard", action],
        # The agent itself may be no root; rights are given to root alone.
        "User": "0:0",
        "Labels": dict(labels),
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "host",
            # Where the engine maps users, only this may share the machine's network.
            "UsernsMode": "host",
            "CapDrop": ["ALL"],
            "CapAdd": ["NET_ADMIN"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "RestartPolicy": {"Name": "no"},
        },
    }


def _beside(
    container: Raw, image: Raw, reference: str, *, command: str, role: str, restart: str
) -> dict[str, Any]:
    config = _like(container, image, reference)
    config["Cmd"] = [command]
    config["Labels"] = {LABEL_AGENT_ROLE: role}
    if role == "overseer":
        # It has no health of its own.
        config["Healthcheck"] = {"Test": ["NONE"]}
    host = _host_config(container)
    host.update({"PortBindings": {}, "PublishAllPorts": False})
    host["RestartPolicy"] = {"Name": restart, "MaximumRetryCount": 0}
    config["HostConfig"] = host
    networks = _networks(container)
    first = _primary(container, networks)
    if first:
        endpoint = {k: v for k, v in networks[first].items() if k not in _NO_ADDRESS}
        config["NetworkingConfig"] = {"EndpointsConfig": {first: endpoint}}
    return config


def _like(container: Raw, image: Raw, reference: str) -> dict[str, Any]:
    old, base = container["Config"], _image_config(image)
    config: dict[str, Any] = {"Image": reference, "Env": _environment(old, base)}
    for name in _INHERITED:
        if old.get(name) and old.get(name) != base.get(name):
            config[name] = old[name]
    for name in _KEPT:
        if old.get(name):
            config[name] = old[name]
    # A name that the engine made up is the old container's id.
    hostname = str(old.get("Hostname") or "")
    is_own_network = not str(container["HostConfig"].get("NetworkMode")).startswith(
        ("host", "container:")
    )
    if hostname and not str(container["Id"]).startswith(hostname) and is_own_network:
        config["Hostname"] = hostname
    return config


def _environment(old: Raw, base: Raw) -> list[str]:
    given = set(base.get("Env") or ())
    return [
        text
        for text in old.get("Env") or ()
        if text not in given and text.partition("=")[0] not in _FORGOTTEN_ENV
    ]


def _labels(container: Raw, image: Raw) -> dict[str, str]:
    derived = derived_labels(environment_of(container["Config"]))
    given = _without(container["Config"].get("Labels"), _image_config(image), "Labels")
    kept = {
        name: value
        for name, value in given.items()
        if name not in _OWN_LABELS and not (derived and is_derived(name))
    }
    return kept | derived


def _host_config(container: Raw) -> dict[str, Any]:
    """All of it: limits, rights, logging. Nameless volumes are bound by their made-up names."""
    host = dict(container["HostConfig"])
    bound = {str(bind).split(":")[1] for bind in host.get("Binds") or () if ":" in str(bind)}
    bound |= {str(mount.get("Target")) for mount in host.get("Mounts") or ()}
    nameless = [
        f"{mount['Name']}:{mount['Destination']}"
        for mount in container.get("Mounts") or ()
        if mount.get("Type") == "volume" and mount["Destination"] not in bound
    ]
    host["Binds"] = [*(host.get("Binds") or ()), *nameless] or None
    return host


def _networks(container: Raw) -> dict[str, dict[str, Any]]:
    """What a person chose for each network; addresses that the engine gave are not repeated."""
    if str(container["HostConfig"].get("NetworkMode")).startswith(("host", "none", "container:")):
        return {}
    found = {}
    short = str(container["Id"])[:12]
    for name, seen in (container["NetworkSettings"].get("Networks") or {}).items():
        endpoint = {
            key: seen[key] for key in ("IPAMConfig", "Links", "DriverOpts") if seen.get(key)
        }
        aliases = [alias for alias in seen.get("Aliases") or () if alias != short]
        if aliases:
            endpoint["Aliases"] = aliases
        found[name] = endpoint
    return found


def _primary(container: Raw, networks: Mapping[str, object]) -> str:
    """The network it is made on; older engines take no more than one."""
    mode = str(container["HostConfig"].get("NetworkMode") or "default")
    name = "bridge" if mode == "default" else mode
    if name in networks:
        return name
    by_id = container["NetworkSettings"].get("Networks") or {}
    return next((n for n, seen in by_id.items() if seen.get("NetworkID") == mode), "")


def _image_config(image: Raw) -> Raw:
    found: Raw = image.get("Config") or {}
    return found


def _without(values: Raw | None, base: Raw, name: str) -> dict[str, Any]:
    given = base.get(name) or {}
    return {k: v for k, v in (values or {}).items() if k not in given or given[k] != v}
