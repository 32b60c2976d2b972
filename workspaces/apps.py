"""App registration of workspaces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from uuid import UUID

    from trailer.policy import Actor


class WorkspacesConfig(AppConfig):
    """Also what apps below know of workspaces: `trailer.access.reliance.ObjectUsers`."""

    name = "workspaces"
    verbose_name = "Workspaces"

    def still_using(self, obj: Any) -> list[tuple[Any, list[Any]]]:
        return list(_services().still_using(obj))

    def evict(self, *, actor: Actor, obj: Any, workspace_id: UUID) -> Any:
        return _services().evict(actor=actor, obj=obj, workspace_id=workspace_id)

    def image_problem(self, workspace: Any) -> str:
        return str(_services().image_problem(workspace))

    def evicted_let_go(self, *, actor: Actor, obj: Any) -> None:
        _services().evicted_let_go(actor=actor, obj=obj)


def _services() -> Any:
    """Once it is asked for: this file is read before there are models."""
    return import_module("workspaces.services.users")
