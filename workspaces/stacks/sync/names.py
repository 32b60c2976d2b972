"""Names of what a stack makes on its host: they get out of the way of names that are taken.

The name space of a host is everybody's: without this, whoever takes `shop-web` first would keep
the stack `shop` from running, by an object that its owner can't even see.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from hosts.models import Host, Network, Volume
from images.models import Image
from trailer.rows import row_lock
from workspaces.models import Workspace
from workspaces.selectors import names_near

if TYPE_CHECKING:
    from collections.abc import Callable

    from workspaces.stacks.models import Stack

_LIMIT: Final = 63
_MARK: Final = 6
_MARKED: Final = re.compile(rf"-[0-9a-f]{{{_MARK}}}")


def workspace_name(stack: Stack, service: str) -> str:
    """`<stack>-<service>`; a workspace that is there keeps the name it has."""
    known = Workspace.objects.filter(stack=stack.pk, service=service).only("name").first()
    if known is not None:
        return known.name
    # A name is also taken when another one differs from it by `-next` alone.
    return _free(
        stack,
        f"{stack.name}-{service}",
        lambda name: bool(names_near(name, host_id=stack.host_id, other_than=None)),
    )


def network_name(stack: Stack, wanted: str) -> str:
    """For a new one: what exists is found by its row."""
    rows = Network.objects.filter(host=stack.host_id)
    return _free(stack, wanted, lambda name: rows.filter(name=name).exists())


def volume_name(stack: Stack, wanted: str) -> str:
    rows = Volume.objects.filter(host=stack.host_id)
    return _free(stack, wanted, lambda name: rows.filter(name=name).exists())


def image_name(stack: Stack, wanted: str, *, limit: int) -> str:
    rows = Image.objects.filter(host=stack.host_id)
    return _free(stack, wanted, lambda name: rows.filter(name=name).exists(), limit=limit)


def is_derived(name: str, wanted: str) -> bool:
    """Whether a name is `wanted`, or what it became when that was taken."""
    rest = name.removeprefix(wanted)
    return name.startswith(wanted) and (not rest or bool(_MARKED.fullmatch(rest)))


def _free(
    stack: Stack, wanted: str, is_taken: Callable[[str], bool], *, limit: int = _LIMIT
) -> str:
    """`wanted`, or else that with a suffix: the same each time for this stack, and not to be
    guessed without knowing its id. Inside the caller's transaction; under the host's lock, so
    that the name stays free until it is used."""
    row_lock(Host.objects.only("pk"), stack.host_id)
    name, tries = wanted, 0
    while is_taken(name):
        seed = f"{stack.pk}\0{wanted}\0{tries}".encode()
        mark = hashlib.sha256(seed).hexdigest()[:_MARK]
        name = f"{wanted[: limit - _MARK - 1]}-{mark}"
        tries += 1
    return name
