"""The administrator's list TRAILER_GIT_ALLOW: where repositories may be read beside the internet.

What its entries mean says `agent.protocol.addresses`, which agents use too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol import addresses as rule
from workspaces.stacks.git.types import GitRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workspaces.stacks.git.address import Address


def allows(entries: Sequence[str], address: Address, addresses: Sequence[str]) -> bool:
    """Whether an entry names this place, or all of these IP addresses."""
    place = rule.Place(address.scheme, address.host, address.port, address.path)
    try:
        return rule.allows(entries, place, addresses)
    except rule.BadEntry as error:
        raise GitRefused(f"TRAILER_GIT_ALLOW has an entry that means nothing: {error}.") from error
