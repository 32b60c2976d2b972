"""Reading hosts and what belongs to them; nothing here writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from agent.protocol.prerequisites import ROUTER_NETWORK
from agent.protocol.state import HostSettings, MetricsSettings, NvidiaSettings, RouterSettings
from hosts.choices import ResourceStatus
from hosts.models import AgentToken, Cycle, Host, still_holds
from hosts.prerequisites import desired_prerequisites
from trailer import policy, secrets
from trailer.errors import Invalid, Unavailable
from trailer.sealed import unseal

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import Model, QuerySet

    from trailer.policy import Actor


def host_for(*, actor: Actor, host_id: UUID, field: str = "host") -> Host:
    """The host that a body names; one that may not be seen is answered like one that is absent."""
    host = Host.objects.visible_to(actor).filter(pk=host_id).first()
    if host is None:
        raise Invalid.field(field, "There is no such host, or you may not see it.")
    return host


def live_agent_token(token: str) -> AgentToken | None:
    return (
        AgentToken.objects.select_related("host")
        .filter(digest=secrets.digest(token), revoked_at__isnull=True)
        .first()
    )


def holds_newest_document(*, token: str, epoch: int, etag: str) -> bool:
    """All that a poll wants to know while nothing changes, in one look-up of a few columns: the
    token is live and in use, its session the newest, its document the present one."""
    return (
        AgentToken.objects.filter(
            digest=secrets.digest(token),
            revoked_at__isnull=True,
            is_unused=False,
            host__epoch=epoch,
            host__document__etag=etag,
            host__document__version=F("host__desired_version"),
        )
        .filter(still_holds(timezone.now(), path="host__document__"))
        .exists()
    )


def host_of_agent(token: str) -> Host | None:
    """The one host that a live agent token is bound to."""
    found = live_agent_token(token)
    return found.host if found is not None else None


def host_key(host: Host) -> str:
    """Signs the labels of what this host's agent makes."""
    if not host.host_key:
        raise Unavailable(f"Host {host.name} has no key yet. Enrol its agent first.")
    return unseal(host, "host_key")


def cycles_of(*, actor: Actor, host: Host) -> QuerySet[Cycle]:
    """Newest first. For admins: the steps name the workspaces of everybody."""
    policy.require(actor, "host.modify", host)
    return Cycle.objects.filter(host=host)


def held_cleanup_of(*, actor: Actor, host: Host) -> str:
    """What the host's agent says of removals that wait for a confirmation; empty without any. For
    admins, as the cycles themselves."""
    cycles = cycles_of(actor=actor, host=host).filter(cleanup__in=("held", "done"))
    newest = cycles.first()
    if newest is None or newest.cleanup != "held":
        return ""
    # The epoch is the time of the last confirmation; the cycle's time is by the agent's clock.
    ended = newest.finished_at.timestamp() - (host.clock_skew_seconds or 0)
    return newest.message if ended > host.state_epoch else ""


def leftovers_of(*, actor: Actor, host: Host) -> list[dict[str, str]]:
    """For admins: they name what anybody keeps on the host."""
    policy.require(actor, "host.modify", host)
    rows: list[dict[str, str]] = Host.objects.values_list("leftovers", flat=True).get(pk=host.pk)
    return rows


def prerequisites_shown(host: Host) -> list[dict[str, str]]:
    """The platform's own containers that are switched on, with what the agent says of them."""
    rows = []
    for wanted in desired_prerequisites(host_settings(host)):
        told = host.prerequisites.get(wanted.kind, {})
        status = str(told.get("status") or ResourceStatus.PENDING)
        message = str(told.get("message") or "")
        rows.append(
            {"kind": wanted.kind, "image": wanted.image, "status": status, "message": message}
        )
    return rows


class HoldersSeen:
    """The workspaces with cards that somebody may see: one query, for however many hosts."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._ids: frozenset[UUID] | None = None

    def name_of(self, workspace: Model) -> str:
        """Who sees a host through one workspace learns of no other."""
        seen = workspace.pk in self._seen(type(workspace))
        return str(getattr(workspace, "name", "")) if seen else "another workspace"

    def _seen(self, model: type[Model]) -> frozenset[UUID]:
        if self._ids is None:
            may = policy.permitted("workspace.view", self._actor)
            rows = model._default_manager.filter(may, gpu_holds__isnull=False)
            self._ids = frozenset(rows.values_list("pk", flat=True))
        return self._ids


def gpus_with_holders(host: Host, seen: HoldersSeen) -> list[dict[str, Any]]:
    """The host's cards and the workspaces in whose hands they are; a card that is held but has
    fallen off is told too. Lists prefetch `gpu_holds__workspace`."""
    blank = {"name": "", "memory_bytes": 0, "index": 0}
    rows: dict[str, dict[str, Any]] = {
        str(gpu.get("id", "")): {**blank, **gpu, "held_by": [], "lost": False} for gpu in host.gpus
    }
    for hold in host.gpu_holds.all():
        if hold.is_active:
            lost = {"id": hold.gpu, **blank, "held_by": [], "lost": True}
            rows.setdefault(hold.gpu, lost)["held_by"].append(seen.name_of(hold.workspace))
    return list(rows.values())


def host_settings(host: Host) -> HostSettings:
    return HostSettings(
        enabled=host.enabled,
        reconcile_interval=float(host.reconcile_interval),
        heartbeat_interval=float(host.heartbeat_interval),
        build_timeout=float(host.build_timeout),
        pull_timeout=float(host.pull_timeout),
        build_idle_timeout=float(host.build_idle_timeout),
        build_context_bytes=host.build_context_bytes,
        build_parallel=host.build_parallel,
        update_interval=float(host.update_interval),
        disk_free_min_bytes=host.disk_free_min_bytes,
        router=RouterSettings(
            mode=host.router_mode,
            network=host.router_network or (ROUTER_NETWORK if host.router_managed else ""),
            entrypoint=host.router_entrypoint,
            certresolver=host.router_certresolver,
            managed=host.router_managed,
            image=host.router_image,
            relay_domain=settings.TRAILER_URL_DOMAIN,
            forward_auth=f"{settings.TRAILER_PUBLIC_URL}/forward-auth/",
        ),
        nvidia=NvidiaSettings(
            deploy_driver=host.nvidia_deploy_driver,
            deploy_toolkit=host.nvidia_deploy_toolkit,
            driver_image=host.nvidia_driver_image,
            toolkit_image=host.nvidia_toolkit_image,
        ),
        metrics=MetricsSettings(
            host=host.metrics_host,
            gpu=host.metrics_gpu,
            workspace=host.metrics_workspace,
            retention_days=host.metrics_retention_days,
        ),
        agent_image=host.agent_image,
        agent_order=host.agent_order,
        maintenance_schedule=host.maintenance_schedule,
        maintenance=host.maintenance,
        block_metadata=host.block_metadata,
        registry_allow=tuple(settings.TRAILER_REGISTRY_ALLOW),
        build_allow=tuple(settings.TRAILER_BUILD_ALLOW),
    )
