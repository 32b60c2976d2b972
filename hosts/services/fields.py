"""The settings of a host that a user may write, and the rules they must keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypedDict

from celery.schedules import ParseException, crontab

from agent.protocol import image_refs
from agent.protocol.prerequisites import network_problem
from hosts.domains import read_domains, registered_elsewhere
from trailer.errors import Invalid
from trailer.validation import LIST_LIMIT, check_columns, check_range, check_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hosts.models import Host


class HostFields(TypedDict, total=False):
    """Column names; the API nests router, nvidia and metrics."""

    name: str
    description: str
    enabled: bool
    reconcile_interval: int
    heartbeat_interval: int
    build_timeout: int
    pull_timeout: int
    build_idle_timeout: int
    build_context_bytes: int
    build_parallel: int
    update_interval: int
    disk_free_min_bytes: int
    router_mode: str
    router_network: str
    router_entrypoint: str
    router_certresolver: str
    router_managed: bool
    router_image: str
    router_domains: list[str]
    nvidia_deploy_driver: bool
    nvidia_deploy_toolkit: bool
    nvidia_driver_image: str
    nvidia_toolkit_image: str
    metrics_host: bool
    metrics_gpu: bool
    metrics_workspace: bool
    metrics_retention_days: int
    agent_image: str
    maintenance_schedule: str
    block_metadata: bool


HOST_COLUMNS: Final = tuple(HostFields.__annotations__)

RANGES: Final = {
    "reconcile_interval": (1, 3600),
    "heartbeat_interval": (1, 3600),
    "build_timeout": (1, 86_400),
    "pull_timeout": (1, 86_400),
    "build_idle_timeout": (1, 86_400),
    "build_context_bytes": (64 * 1024, 1024**3),
    "build_parallel": (1, 64),
    # Faster would only annoy registries, which count requests.
    "update_interval": (10, 86_400),
    # 0 switches the brake off.
    "disk_free_min_bytes": (0, 1024**5),
    "metrics_retention_days": (1, 3650),
}

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._ -]{0,61}[A-Za-z0-9._-])?")
_WORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)?")

_GROUPS: Final = frozenset({"router", "nvidia", "metrics"})
_GRAMMARS: Final = {
    "router_network": (_WORD, "a network's name"),
    "router_entrypoint": (_WORD, "the name of an entry point"),
    "router_certresolver": (_WORD, "the name of a certificate resolver"),
}
_IMAGES: Final = ("router_image", "nvidia_driver_image", "nvidia_toolkit_image", "agent_image")


def check_host(host: Host, changed: Mapping[str, object]) -> None:
    """`host` carries the new values already; only what changed is looked at."""
    try:
        _check(host, changed)
    except Invalid as error:
        fields = {_api_name(name): sentences for name, sentences in error.fields.items()}
        message = error.message
        for name in error.fields:
            message = message.replace(f"{name}: ", f"{_api_name(name)}: ")
        raise Invalid(message, fields=fields) from error


def _api_name(column: str) -> str:
    """`router_network` is `network` inside `router` for whoever sent it."""
    group, _, name = column.partition("_")
    return f"{group}.{name}" if group in _GROUPS else column


def _check(host: Host, changed: Mapping[str, object]) -> None:
    check_text(changed)
    check_columns(host, changed)
    check_range(changed, RANGES)
    if "name" in changed and not _HOST_NAME.fullmatch(host.name):
        raise Invalid.field(
            "name",
            "A host's name has 1 to 63 letters, digits, dots, hyphens, underscores or spaces, "
            "and begins with a letter or digit.",
        )
    for name, (grammar, words) in _GRAMMARS.items():
        value = changed.get(name)
        if isinstance(value, str) and not grammar.fullmatch(value):
            raise Invalid.field(name, f"“{value}” is not {words}.")
    if problem := network_problem(str(changed.get("router_network", ""))):
        raise Invalid.field("router_network", problem)
    for name in _IMAGES:
        if changed.get(name):
            check_image_reference(name, str(changed[name]))
    for part in ("driver", "toolkit"):
        names = (f"nvidia_deploy_{part}", f"nvidia_{part}_image")
        if set(names) & set(changed) and getattr(host, names[0]) and not getattr(host, names[1]):
            raise Invalid.field(
                names[1], f"To deploy the NVIDIA {part}, name the image that it comes from."
            )
    if "router_domains" in changed:
        _check_domains(host)
    if changed.get("maintenance_schedule"):
        _check_cron(host.maintenance_schedule)


def _check_domains(host: Host) -> None:
    given = host.router_domains
    if not isinstance(given, list) or len(given) > LIST_LIMIT:
        raise Invalid.field("router_domains", f"A list of up to {LIST_LIMIT} domains is needed.")
    try:
        domains = read_domains(given)
    except ValueError as wrong:
        raise Invalid.field(
            "router_domains",
            f"“{wrong}” is not a domain, for example apps.example.com, or apps.example.com:8443 "
            "where the router listens on another port.",
        ) from wrong
    other = registered_elsewhere(domains, host_id=host.pk)
    if other is not None:
        raise Invalid.field(
            "router_domains",
            f"The domain {other.domain} is registered for the host {other.host_name}. "
            "Remove it there first.",
        )


def check_image_reference(name: str, value: str) -> None:
    """The name of an image, or the id of one that the host has."""
    if not image_refs.engine_id(value) and (problem := image_refs.problem(value)):
        raise Invalid.field(name, problem)


def _check_cron(text: str) -> None:
    try:
        crontab.from_string(text)
    except (ParseException, ValueError, TypeError) as error:
        raise Invalid.field(
            "maintenance_schedule",
            f"“{text}” is not a cron expression; write five fields, for example 0 3 * * 0.",
        ) from error
