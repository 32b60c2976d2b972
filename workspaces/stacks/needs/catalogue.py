"""The kinds of needs there are. A new kind is one file beside this one and one line here."""

from __future__ import annotations

import secrets as entropy
from typing import TYPE_CHECKING, Final

from workspaces.stacks.file.secret import Secret
from workspaces.stacks.needs import postgres, valkey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.stacks.file.types import NeedSpec, ServiceSpec
    from workspaces.stacks.needs.kind import NeedKind

_KINDS: Final = (postgres.KIND, valkey.KIND)


def need_kinds() -> Mapping[str, NeedKind]:
    return {kind.name: kind for kind in _KINDS}


def new_credentials(kind: str) -> dict[str, Secret]:
    """Made once per stack and kind; hex only, so that they stand in any URL as they are."""
    return {name: Secret(entropy.token_hex(24)) for name in need_kinds()[kind].credentials}


def need_service(need: NeedSpec, credentials: Mapping[str, Secret]) -> ServiceSpec:
    """The need as a service: name (its DNS name too), image, own volume, health check."""
    return need_kinds()[need.kind].service(need, credentials)


def need_values(need: NeedSpec, credentials: Mapping[str, Secret]) -> Mapping[str, str | Secret]:
    """What `${needs.<kind>.<part>}` stands for, by part."""
    return need_kinds()[need.kind].values(need, credentials)


def need_volume(kind: str) -> str:
    """Key of the stack's volume that holds the data of this need."""
    return need_kinds()[kind].volume
