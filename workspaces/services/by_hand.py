"""Services of a stack are written by its file: a change by hand would not last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trailer.errors import Conflict
from workspaces.stacks.models import Stack

if TYPE_CHECKING:
    from workspaces.models import Workspace


def check_by_hand(
    workspace: Workspace, *, instead: str = "Change it in the stack's repository."
) -> None:
    if workspace.stack is None:
        return
    name = Stack.objects.filter(pk=workspace.stack).values_list("name", flat=True).first()
    raise Conflict(
        f"{workspace.name} is the service {workspace.service} of the stack {name}. {instead}",
        code="of_a_stack",
    )
