"""What one kind of need says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workspaces.stacks.file.secret import Secret
    from workspaces.stacks.file.types import NeedSpec, ServiceSpec


@dataclass(frozen=True, kw_only=True)
class NeedKind:
    """`service` writes the need as a service of the stack, `values` its `${needs.<kind>.*}`.

    Both are pure functions of what the file asks for and of the stored credentials, so a need
    changes only when one of these does.
    """

    name: str
    # Names of the credentials; each is made once, at random, and then kept with the stack.
    credentials: tuple[str, ...]
    # Key of the volume that holds the data; kept until a tombstone.
    volume: str
    # Options beside image, mem_limit, cpus and ready_timeout, which every kind has.
    options: tuple[str, ...] = ()
    service: Callable[[NeedSpec, Mapping[str, Secret]], ServiceSpec]
    values: Callable[[NeedSpec, Mapping[str, Secret]], Mapping[str, str | Secret]]
