"""Whether what a workspace is made of may be used now: by the rights of whoever brought it in.

Pure: facts in, sentences out. `workspaces/services/rights.py` reads the facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from trailer.access.models import Capability, ObjectKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

# A user's id, or None for one that is gone.
Person = Any

_REMEDIES: Final = {
    ObjectKind.VOLUME: "Take it out of the workspace",
    ObjectKind.NETWORK: "Take it out of the workspace",
    ObjectKind.IMAGE: "Choose another image",
}
_GATES: Final = {
    Capability.BIND: "mount folders of the host",
    Capability.ADDRESSES: "choose addresses of networks on the host",
}


@dataclass(frozen=True, kw_only=True)
class Use:
    """One volume, network or image in a workspace.

    `by`: whose right counts, any of them: who brought it in, and the workspace's owner.
    `capability` is what its own owner must have on the host for it to be there at all.
    """

    kind: ObjectKind
    id: UUID
    name: str
    owner: Person
    by: tuple[Person, ...]
    role: Role = Role.VIEWER
    evicted: bool = False
    capability: Capability | None = None
    # Of a snapshot: who took it of which workspace.
    maker: Person = None
    source: UUID | None = None

    @property
    def is_borrowed(self) -> bool:
        return self.owner not in self.by


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the workspace itself has of its host by a capability."""

    capability: Capability
    by: tuple[Person, ...]


@dataclass(frozen=True, kw_only=True)
class Uses:
    """All that one workspace needs a right for."""

    host_name: str
    objects: tuple[Use, ...]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the people concerned may do at one moment. `until`: when the first grant of it ends."""

    names: Mapping[Person, str] = field(default_factory=dict)
    active: frozenset[Person] = frozenset()
    superusers: frozenset[Person] = frozenset()
    roles: Mapping[tuple[Person, str, UUID], int] = field(default_factory=dict)
    capabilities: frozenset[tuple[Person, str]] = frozenset()
    open_capabilities: frozenset[str] = frozenset()
    # Workspaces that somebody may copy, and so may use the snapshots of that they took.
    copied: frozenset[tuple[Person, UUID]] = frozenset()
    until: datetime | None = None


def problems_of(uses: Uses, standing: Standing) -> tuple[str, ...]:
    """Why no container may be made or started now, one sentence for each reason."""
    found = [_object_problem(use, standing, uses.host_name) for use in uses.objects]
    found += [_claim_problem(claim, standing, uses.host_name) for claim in uses.claims]
    return tuple(dict.fromkeys(filter(None, found)))


def lost_by(use: Use, standing: Standing) -> Person | None:
    """Whose right to this object is gone; None while it holds."""
    return None if _may_use(use, standing) else next(iter(use.by), None)


def asks_people(uses: Uses, open_capabilities: frozenset[str]) -> set[Person]:
    """Those whose rights have to be looked up; nobody where ownership answers everything."""
    people: set[Person] = set()
    for use in uses.objects:
        if use.is_borrowed:
            people |= {*use.by}
        if use.capability is not None:
            people |= {use.owner}
    for claim in uses.claims:
        if claim.capability not in open_capabilities:
            people |= {*claim.by}
    return people - {None}


def _object_problem(use: Use, standing: Standing, host_name: str) -> str:
    label, remedy = f"the {use.kind.value} {use.name}", _REMEDIES[use.kind]
    if use.evicted:
        return f"Its use of {label} was ended by whoever manages that. {remedy} to start it again."
    gate = use.capability
    if gate is not None and not _has(standing, use.owner, gate):
        return (
            f"{_name(standing, use.owner)}, to whom {label} belongs, may no longer "
            f"{_GATES[gate]} {host_name}. {remedy}, or ask an administrator."
        )
    if _may_use(use, standing):
        return ""
    who = _may_not(standing, use.by)
    if use.role == Role.EDITOR and _may_use(replace(use, role=Role.VIEWER), standing):
        return f"{who} write to {label} any more. Mount it read-only, or ask its owner."
    return f"{who} use {label} any more. {remedy}, or ask its owner."


def _claim_problem(claim: Claim, standing: Standing, host_name: str) -> str:
    if claim.capability in standing.open_capabilities:
        return ""
    if any(_has(standing, person, claim.capability) for person in claim.by):
        return ""
    who = _may_not(standing, claim.by)
    if claim.capability == Capability.PRIVILEGED:
        return (
            f"{who} turn on privileged settings on the host {host_name} any more. Turn "
            "nested_virtualization off, or ask an administrator."
        )
    return f"{who} run workspaces on the host {host_name} any more. Ask an administrator."


def _may_use(use: Use, standing: Standing) -> bool:
    return any(_may(person, use, standing) for person in use.by)


def _may(person: Person, use: Use, standing: Standing) -> bool:
    """Whoever is deactivated keeps what they own, and nothing that they were given."""
    if person is None or person == use.owner:
        return person is not None
    if person not in standing.active:
        return False
    if person in standing.superusers:
        return True
    if standing.roles.get((person, use.kind.value, use.id), 0) >= use.role:
        return True
    took_it = use.source is not None and person == use.maker
    return took_it and (person, use.source) in standing.copied


def _has(standing: Standing, person: Person, capability: Capability) -> bool:
    if capability != Capability.WORKSPACES and person not in standing.active:
        # Whoever is deactivated keeps the place of what runs, and no power over the host.
        return False
    return person in standing.superusers or (person, capability.value) in standing.capabilities


def _may_not(standing: Standing, people: Iterable[Person]) -> str:
    names = [*dict.fromkeys(_name(standing, person) for person in people)]
    return f"{names[0]} may not" if len(names) == 1 else f"Neither {' nor '.join(names)} may"


def _name(standing: Standing, person: Person) -> str:
    return standing.names.get(person, "Somebody who is gone")
