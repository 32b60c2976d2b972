"""What the workspace form shows: the choices a user has, and the values of one workspace."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Q

from hosts.models import Network, Volume
from images.models import Image
from trailer import policy
from trailer.pages.host_choice import hosts_to_choose
from trailer.quantities import exact_size
from workspaces.choices import DesiredState, UrlAuth

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User
    from workspaces.models import Workspace


@dataclass(frozen=True)
class Options:
    """Hosts the user may create on, and what of theirs, or shared with them, lives there."""

    hosts: list[tuple[str, str]]
    images: list[Image]
    networks: list[Network]
    volumes: list[Volume]
    states: list[tuple[str, str]]
    auths: list[tuple[str, str]]
    # Hosts on which the user may create volumes.
    volume_hosts: list[str] = field(default_factory=list)
    # Where a URL works with nothing set up on the host.
    url_domain: str = ""


@dataclass(frozen=True)
class WorkspaceForm:
    """Every value as the text of its input."""

    name: str = ""
    description: str = ""
    host: str = ""
    image: str = ""
    command: str = ""
    cpus: str = ""
    memory_bytes: str = ""
    shm_bytes: str = ""
    gpu_count: str = ""
    gpu_ids: str = ""
    gpu_shared: bool = False
    nested_virtualization: bool = False
    env: list[dict[str, Any]] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    networks: frozenset[str] = frozenset()
    urls: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, str]] = field(default_factory=list)
    schedule_start: str = ""
    schedule_stop: str = ""
    idle_stop_minutes: str = ""
    health_test: str = ""
    health_interval: str = "10"
    health_timeout: str = "5"
    health_retries: str = "3"
    health_start_period: str = "0"
    startup_timeout: str = "60"
    drain_timeout: str = "10"
    shared_volumes: bool = False


def options_for(
    user: User, host: Host | None = None, workspace: Workspace | None = None
) -> Options:
    """What a workspace uses already is a choice too, even if the user can't use it elsewhere."""
    on_host = {} if host is None else {"host": host}
    used: dict[str, list[Any]] = {"image": [], "network": [], "volume": []}
    if workspace is not None:
        used["image"] = [workspace.image_id]
        used["network"] = [network.pk for network in workspace.networks.all()]
        used["volume"] = [mount.volume_id for mount in workspace.mounts.all()]
    images, networks, volumes = (_usable(user, kind, ids) for kind, ids in used.items())
    makes_volumes = [] if host else hosts_to_choose(user, "host.volumes")
    return Options(
        hosts=[] if host else hosts_to_choose(user, "host.workspaces"),
        volume_hosts=[host_id for host_id, _ in makes_volumes],
        # nosemgrep: unscoped-read (by `_usable`)
        images=list(Image.objects.filter(images, **on_host).select_related("host")),
        # nosemgrep: unscoped-read (by `_usable`)
        networks=list(Network.objects.filter(networks, **on_host)),
        # nosemgrep: unscoped-read (by `_usable`)
        volumes=list(Volume.objects.filter(volumes, **on_host)),
        states=[(DesiredState.RUNNING, "Start it"), (DesiredState.STOPPED, "Leave it stopped")],
        # What keeps strangers out comes first: it is what a new row begins with.
        auths=[
            (UrlAuth.USERS, "With access"),
            (UrlAuth.OWNER, "Only the owner"),
            (UrlAuth.PUBLIC, "Everybody"),
        ],
        url_domain=settings.TRAILER_URL_DOMAIN,
    )


def _usable(user: User, kind: str, used: list[Any]) -> Q:
    usable = policy.permitted(f"{kind}.use", user)
    # An empty filter means everything; joined with another one it would mean only that one.
    return usable | Q(pk__in=used) if usable and used else usable


def blank_form(options: Options, *, host: str, image: str) -> WorkspaceForm:
    """Defaults that work: the only host, or the one the user came from."""
    chosen_image = next((row for row in options.images if str(row.pk) == image), None)
    if chosen_image is not None:
        return WorkspaceForm(host=str(chosen_image.host_id), image=image)
    known = [value for value, _ in options.hosts]
    return WorkspaceForm(host=host if host in known else next(iter(known), ""))


def form_of(workspace: Workspace) -> WorkspaceForm:
    """Needs the parts prefetched. Secret values never reach the page."""
    check, gpus, schedule = workspace.health_check, workspace.gpus, workspace.schedule
    return WorkspaceForm(
        name=workspace.name,
        description=workspace.description,
        host=str(workspace.host_id),
        image=str(workspace.image_id),
        command=_words(workspace.command),
        cpus="" if workspace.cpus is None else f"{workspace.cpus.normalize():f}",
        memory_bytes=exact_size(workspace.memory_bytes),
        shm_bytes=exact_size(workspace.shm_bytes),
        gpu_count=_number(gpus.get("count") or None),
        gpu_ids=", ".join(gpus.get("device_ids") or []),
        gpu_shared=bool(gpus.get("shared")),
        nested_virtualization=workspace.nested_virtualization,
        **_parts_of(workspace),
        networks=frozenset(str(row.pk) for row in workspace.networks.all()),
        labels=[{"name": key, "value": value} for key, value in workspace.labels.items()],
        schedule_start=schedule.get("start", ""),
        schedule_stop=schedule.get("stop", ""),
        idle_stop_minutes=_number(workspace.idle_stop_minutes),
        health_test=_health_words(check.get("test") or []),
        health_interval=_number(check.get("interval", 10)),
        health_timeout=_number(check.get("timeout", 5)),
        health_retries=_number(check.get("retries", 3)),
        health_start_period=_number(check.get("start_period", 0)),
        startup_timeout=str(workspace.startup_timeout),
        drain_timeout=str(workspace.drain_timeout),
        shared_volumes=workspace.shared_volumes,
    )


def _parts_of(workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    return {
        "env": [
            {"name": row.name, "value": row.value, "secret": row.is_secret}
            for row in workspace.env_vars.all()
        ],
        "ports": [
            {
                "container_port": row.container_port,
                "protocol": row.protocol,
                "host_port": row.host_port,
                "host_ip": row.host_ip,
            }
            for row in workspace.ports.all()
        ],
        "mounts": [
            {"volume": str(row.volume_id), "target": row.target, "read_only": row.read_only}
            for row in workspace.mounts.all()
        ],
        "urls": [
            {
                "subdomain": row.subdomain,
                "domain": row.domain,
                "port": row.port,
                "tls": row.tls,
                "auth": row.auth,
            }
            for row in workspace.urls.all()
        ],
    }


def _words(arguments: list[str]) -> str:
    """Plain words stay plain; anything that would need quoting is shown as the list it is."""
    if all(word and word.isprintable() and not set(word) & set(" \"'\\[") for word in arguments):
        return " ".join(arguments)
    return json.dumps(arguments, ensure_ascii=False)


def _health_words(test: list[str]) -> str:
    if len(test) == 2 and test[0] == "CMD-SHELL":
        return test[1]
    return json.dumps(test, ensure_ascii=False) if test else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
