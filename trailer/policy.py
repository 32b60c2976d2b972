"""Who may do what: one rule per action, giving both the predicate and the queryset filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import Q

from trailer.errors import NotAllowed, NotFound

if TYPE_CHECKING:
    from django.db.models import Model

# A User or AnonymousUser: models import this file, so it cannot import the user model back.
Actor = Any


class Rule(Protocol):
    def allows(self, actor: Actor, obj: Model | None) -> bool: ...

    def q(self, actor: Actor) -> Q: ...


_NOTHING = Q(pk__in=[])


@dataclass(frozen=True)
class Admin:
    def allows(self, actor: Actor, obj: Model | None) -> bool:
        return bool(actor.is_authenticated and actor.is_active and actor.is_superuser)

    def q(self, actor: Actor) -> Q:
        return Q() if self.allows(actor, None) else _NOTHING


@dataclass(frozen=True)
class SignedIn:
    def allows(self, actor: Actor, obj: Model | None) -> bool:
        return bool(actor.is_authenticated and actor.is_active)

    def q(self, actor: Actor) -> Q:
        return Q() if self.allows(actor, None) else _NOTHING


@dataclass(frozen=True)
class Owner:
    """`path` leads from the object to the user, as in a queryset look-up."""

    path: str = "owner"

    def allows(self, actor: Actor, obj: Model | None) -> bool:
        if obj is None or not SignedIn().allows(actor, None):
            return False
        value: Any = obj
        for part in self.path.split("__"):
            value = getattr(value, part)
        return bool(value == actor)

    def q(self, actor: Actor) -> Q:
        return Q(**{self.path: actor.pk}) if SignedIn().allows(actor, None) else _NOTHING


@dataclass(frozen=True)
class AnyOf:
    rules: tuple[Rule, ...]

    def allows(self, actor: Actor, obj: Model | None) -> bool:
        return any(rule.allows(actor, obj) for rule in self.rules)

    def q(self, actor: Actor) -> Q:
        filters = [rule.q(actor) for rule in self.rules]
        if any(not condition for condition in filters):
            return Q()
        combined = filters[0]
        for condition in filters[1:]:
            combined |= condition
        return combined


_OWNED = AnyOf((Admin(), Owner()))

RULES: dict[str, Rule] = {
    "host.view": SignedIn(),
    "host.create": Admin(),
    "host.modify": Admin(),
    "host.delete": Admin(),
    "network.view": _OWNED,
    "network.create": SignedIn(),
    "network.modify": _OWNED,
    "network.delete": _OWNED,
    "volume.view": _OWNED,
    "volume.create": SignedIn(),
    "volume.create_bind": Admin(),
    "volume.modify": _OWNED,
    "volume.delete": _OWNED,
    "registry.view": _OWNED,
    "registry.create": SignedIn(),
    "registry.modify": _OWNED,
    "registry.delete": _OWNED,
    "image.view": _OWNED,
    "image.create": SignedIn(),
    "image.modify": _OWNED,
    "image.delete": _OWNED,
    "build.view": AnyOf((Admin(), Owner("image__owner"))),
    "workspace.view": _OWNED,
    "workspace.create": SignedIn(),
    "workspace.modify": _OWNED,
    "workspace.delete": _OWNED,
    "workspace.privileged": Admin(),
    "apitoken.view": Owner("user"),
    "apitoken.create": SignedIn(),
    "apitoken.modify": Owner("user"),
    "apitoken.delete": Owner("user"),
    "user.view": Admin(),
    "user.modify": Admin(),
}


def allows(actor: Actor, action: str, obj: Model | None = None) -> bool:
    return RULES[action].allows(actor, obj)


def require(actor: Actor, action: str, obj: Model | None = None) -> None:
    """Raise unless the actor may; an object that may not even be seen is reported as absent."""
    if RULES[action].allows(actor, obj):
        return
    noun = action.split(".", maxsplit=1)[0]
    if obj is not None and not RULES[f"{noun}.view"].allows(actor, obj):
        raise NotFound(f"There is no such {noun}, or you may not see it.")
    raise NotAllowed(f"You may not {_words(action)}. Ask an administrator.")


def visible(model_name: str, actor: Actor) -> Q:
    return RULES[f"{model_name}.view"].q(actor)


def _words(action: str) -> str:
    noun, verb = action.split(".", maxsplit=1)
    return f"{verb.replace('_', ' ')} this {noun}" if verb != "create" else f"create a {noun}"
