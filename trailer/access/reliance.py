"""A change of rights is a change for the hosts where something rests on them: their agents get a
new document at once. Hosts and workspaces are above this file, and so found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from django.apps import apps
from django.db.models import F, Q

from trailer import events

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from trailer.policy import Actor


class ObjectUsers(Protocol):
    """What the app of workspaces says, and does, about those that use an object."""

    def still_using(self, obj: Any) -> list[tuple[Any, list[Any]]]: ...

    def evict(self, *, actor: Actor, obj: Any, workspace_id: UUID) -> Any: ...

    def image_problem(self, workspace: Any) -> str: ...

    def evicted_let_go(self, *, actor: Actor, obj: Any) -> None: ...


def object_users() -> ObjectUsers:
    return cast("ObjectUsers", apps.get_app_config("workspaces"))


def hosts_judge_again(host_ids: Iterable[UUID]) -> None:
    """Inside the transaction that gives or takes the right."""
    ids = sorted(set(host_ids))
    if not ids:
        return
    # Always in this order: two such changes at once never wait for each other.
    hosts: Any = apps.get_model("hosts", "Host")._default_manager
    for host_id in ids:
        hosts.filter(pk=host_id).update(desired_version=F("desired_version") + 1)
        events.nudge(host_id)


def hosts_hold(host_ids: Iterable[UUID]) -> None:
    """Hosts are locked before what is on them and before people: for those who lock these first
    and call one of the others later."""
    hosts: Any = apps.get_model("hosts", "Host")._default_manager
    rows = hosts.select_for_update().filter(pk__in=set(host_ids)).order_by("pk")
    list(rows.values_list("pk"))


def people_hold(user_ids: Collection[Any]) -> None:
    hosts_hold(_hosts_of(user_ids) if user_ids else ())


def people_judged_again(user_ids: Collection[Any]) -> None:
    """What somebody brought into a workspace, or owns on a host, may rest on what they lost."""
    if user_ids:
        hosts_judge_again(_hosts_of(user_ids))


def _hosts_of(user_ids: Collection[Any]) -> set[UUID]:
    def rows(model: str, host: str, *paths: str) -> set[UUID]:
        condition = Q(pk__in=[])
        for path in paths:
            condition |= Q(**{f"{path}__in": user_ids})
        app = "hosts" if model in ("Volume", "Network") else "workspaces"
        found = apps.get_model(app, model)._default_manager.filter(condition)
        return set(found.order_by().values_list(host, flat=True).distinct())

    return (
        rows("Workspace", "host_id", "owner", "image_by", "privileged_by", "placed_by")
        | rows("Mount", "workspace__host_id", "attached_by")
        | rows("NetworkAttachment", "workspace__host_id", "attached_by")
        | rows("Volume", "host_id", "owner")
        | rows("Network", "host_id", "owner")
    )
