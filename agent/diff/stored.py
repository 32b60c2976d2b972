"""The spec a container was made from, kept in its label, and what has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from agent.protocol import naming
from agent.protocol.compare import IN_PLACE, compare, stored_form
from agent.protocol.spec import SPEC_FORMAT, WorkspaceSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.report import FieldChange

# Compared with what inspect says: an in-place change cannot rewrite the label.
_FROM_INSPECT = frozenset({"name", "networks"})


@dataclass(frozen=True, kw_only=True)
class StoredSpec:
    spec: WorkspaceSpec
    # Fields the writer of the label knew; others are news of a later version.
    known: frozenset[str]
    revision: int


def spec_labels(spec: WorkspaceSpec, *, revision: int, host_key: str) -> dict[str, str]:
    return {
        naming.LABEL_SPEC: msgspec.json.encode(
            stored_form(spec, host_key), order="deterministic"
        ).decode(),
        naming.LABEL_SPEC_FORMAT: str(SPEC_FORMAT),
        naming.LABEL_REVISION: str(revision),
    }


def read_stored(labels: Mapping[str, str]) -> StoredSpec | None:
    """None when there is no label, or one this agent cannot read (written by a newer one)."""
    text = labels.get(naming.LABEL_SPEC, "")
    try:
        if int(labels.get(naming.LABEL_SPEC_FORMAT, "0")) > SPEC_FORMAT:
            return None
        revision = int(labels.get(naming.LABEL_REVISION, "0"))
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        spec = msgspec.json.decode(text, type=WorkspaceSpec)
    except (msgspec.MsgspecError, ValueError):
        return None
    return StoredSpec(spec=spec, known=frozenset(raw), revision=revision)


def changes_since(
    stored: StoredSpec | None,
    wanted: WorkspaceSpec,
    *,
    revision: int,
    host_key: str,
    router_mode: str,
) -> tuple[FieldChange, ...]:
    """Differences that need a new container. A label this agent cannot read shows none."""
    if stored is None:
        return ()
    new = stored_form(wanted, host_key)
    if stored.revision == revision:
        # Nobody edited the workspace: a field its label does not know came with an upgrade.
        unknown = [name for name in new.__struct_fields__ if name not in stored.known]
        old_values = {name: getattr(new, name) for name in unknown}
        old = msgspec.structs.replace(stored.spec, **old_values)
    else:
        old = stored.spec
    return tuple(
        change
        for change in compare(old, new, router_mode=router_mode)
        if change.field not in _FROM_INSPECT and change.effect != IN_PLACE
    )
