"""Who may do what: one rule per action, giving both the predicate and the queryset filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.apps import apps
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, Subquery, UUIDField, Value

from trailer.access.models import Capability, Right, Role, capabilities_held, live_grants
from trailer.access.snapshot_rule import FromSource
from trailer.access.words import action_words
from trailer.errors import NotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import Model

# A User or AnonymousUser: models import this file, so it cannot import the user model back.
Actor = Any


class Rule(Protocol):
    def allows(self, actor: Actor, obj: Model | None) -> bool: ...

    def q(self, actor: Actor) -> Q: ...


_NOTHING = Q(pk__in=[])
# What copying a workspace's files takes.
_EDITS_IN_TERMINAL: Final = (Role.EDITOR, Right.TERMINAL)


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
        holder: Any = obj
        *way, last = self.path.split("__")
        for part in way:
            holder = getattr(holder, part)
        # By id: reading the user itself would cost a query for each object of a list.
        return bool(getattr(holder, f"{last}_id") == actor.pk)

    def q(self, actor: Actor) -> Q:
        return Q(**{self.path: actor.pk}) if SignedIn().allows(actor, None) else _NOTHING


@dataclass(frozen=True)
class Granted:
    """At least this role on the object, or on the object at `path` that it belongs to, by a grant
    that does not leave out this right."""

    kind: str
    role: Role
    path: str = "pk"
    right: Right | None = None

    def allows(self, actor: Actor, obj: Model | None) -> bool:
        if obj is None or not SignedIn().allows(actor, None):
            return False
        if self.path != "pk" and getattr(obj, self.path) is None:
            return False
        if self.path == "pk" and getattr(obj, "granted_to", None) == actor.pk:
            # Read together with the row: a list needs no query per object.
            if (getattr(obj, "granted_role", None) or 0) < self.role:
                return False
            if self.right is None:
                return True
            if self.right == Right.INSPECT and hasattr(obj, "granted_inspect"):
                return bool(obj.granted_inspect)
            if (self.role, self.right) == _EDITS_IN_TERMINAL and hasattr(obj, "granted_terminal"):
                return bool(obj.granted_terminal)
        return bool(self._held(actor).filter(object_id=getattr(obj, self.path)).exists())

    def q(self, actor: Actor) -> Q:
        if not SignedIn().allows(actor, None):
            return _NOTHING
        return Q(**{f"{self.path}__in": self._held(actor).values("object_id")})

    def _held(self, actor: Actor) -> Any:
        rights = {} if self.right is None else {self.right.value: True}
        return live_grants(actor.pk, self.kind, role__gte=self.role, **rights)


# What everybody may do on every host, unless TRAILER_OPEN_HOSTS is off. A list of what is open:
# a new capability belongs to nobody until an administrator gives it.
OPEN_CAPABILITIES: Final = frozenset(
    {
        Capability.VIEW,
        Capability.WORKSPACES,
        Capability.IMAGES,
        Capability.VOLUMES,
        Capability.NETWORKS,
    }
)


@dataclass(frozen=True)
class Capable:
    """Holds this capability on the host; without a host: on any. Any one of them gives view."""

    capability: Capability

    def allows(self, actor: Actor, obj: Model | None) -> bool:
        if not SignedIn().allows(actor, None):
            return False
        if self._is_open():
            return True
        held = self._held(actor)
        return bool((held if obj is None else held.filter(host_id=obj.pk)).exists())

    def q(self, actor: Actor) -> Q:
        if not SignedIn().allows(actor, None):
            return _NOTHING
        return Q() if self._is_open() else Q(pk__in=self._held(actor).values("host_id"))

    def _is_open(self) -> bool:
        return bool(settings.TRAILER_OPEN_HOSTS and self.capability in OPEN_CAPABILITIES)

    def _held(self, actor: Actor) -> Any:
        held = capabilities_held(actor.pk)
        if self.capability == Capability.VIEW:
            return held
        return held.filter(capability=self.capability)


@dataclass(frozen=True)
class Through:
    """Is part of a workspace that this may be done with; `path` leads there from the workspace."""

    action: str
    path: str

    def allows(self, actor: Actor, obj: Model | None) -> bool:
        if obj is None or not SignedIn().allows(actor, None):
            return False
        return bool(self._workspaces(actor).filter(**{self.path: obj.pk}).exists())

    def q(self, actor: Actor) -> Q:
        if not SignedIn().allows(actor, None):
            return _NOTHING
        return Q(pk__in=self._workspaces(actor).values(self.path))

    def _workspaces(self, actor: Actor) -> Any:
        # By name: workspaces are above this file.
        rows = apps.get_model("workspaces", "Workspace").objects
        return rows.filter(RULES[self.action].q(actor)).order_by()


@dataclass(frozen=True)
class AnyOf:
    rules: tuple[Rule, ...]

    def allows(self, actor: Actor, obj: Model | None) -> bool:
        return any(rule.allows(actor, obj) for rule in self.rules)

    def q(self, actor: Actor) -> Q:
        combined = _NOTHING
        for rule in self.rules:
            condition = rule.q(actor)
            # Everything: what the rules after it would add need not be put together.
            if not condition:
                return condition
            combined = condition if combined is _NOTHING else combined | condition
        return combined


_OWNED = AnyOf((Admin(), Owner()))


def _shared(kind: str, role: Role) -> Rule:
    return AnyOf((Admin(), Owner(), Granted(kind, role)))


def _copyable(actor: Actor) -> Any:
    """Workspaces whose files the actor may copy."""
    rows = apps.get_model("workspaces", "Workspace").objects
    return rows.filter(RULES["workspace.copy"].q(actor)).order_by()


_TAKEN = FromSource(_copyable, only_maker=True)


def _image(role: Role) -> Rule:
    """Who took a snapshot counts as an editor of it as long as they may copy its workspace."""
    rules = (Admin(), Owner(), Granted("image", role))
    return AnyOf((*rules, _TAKEN) if role <= Role.EDITOR else rules)


def _part(kind: str, path: str, *more: Rule) -> Rule:
    """What a workspace is made of shows to whoever sees how it is configured, and no more than
    that: to use it elsewhere takes a role of one's own."""
    rules = (Admin(), Owner(), Granted(kind, Role.VIEWER), Through("workspace.inspect", path))
    return AnyOf((*rules, *more))


def _capable(capability: Capability) -> Rule:
    return AnyOf((Admin(), Capable(capability)))


def _of_stack(role: Role, right: Right | None = None) -> Rule:
    """Workspaces are shared one by one, and services of a stack together with it."""
    alone = Granted("workspace", role, right=right)
    return AnyOf((Admin(), Owner(), alone, Granted("stack", role, path="stack", right=right)))


RULES: dict[str, Rule] = {
    "host.view": AnyOf((_capable(Capability.VIEW), Through("workspace.view", "host"))),
    # To have it do something for oneself.
    "host.use": _capable(Capability.VIEW),
    "host.create": Admin(),
    "host.modify": Admin(),
    "host.delete": Admin(),
    **{f"host.{name}": _capable(name) for name in Capability if name != Capability.VIEW},
    "network.view": _part("network", "networks"),
    "network.use": _shared("network", Role.VIEWER),
    "network.create": SignedIn(),
    "network.modify": _shared("network", Role.EDITOR),
    "network.delete": _shared("network", Role.MANAGER),
    "network.share": _shared("network", Role.MANAGER),
    "network.evict": _shared("network", Role.MANAGER),
    "network.transfer": _OWNED,
    "volume.view": _part("volume", "mounts__volume"),
    # To mount it read-only.
    "volume.use": _shared("volume", Role.VIEWER),
    "volume.write": _shared("volume", Role.EDITOR),
    "volume.create": SignedIn(),
    "volume.create_bind": _capable(Capability.BIND),
    "volume.modify": _shared("volume", Role.EDITOR),
    "volume.delete": _shared("volume", Role.MANAGER),
    "volume.share": _shared("volume", Role.MANAGER),
    "volume.evict": _shared("volume", Role.MANAGER),
    "volume.transfer": _OWNED,
    "registry.view": _OWNED,
    "registry.create": SignedIn(),
    "registry.modify": _OWNED,
    "registry.delete": _OWNED,
    "image.view": _part("image", "image", _TAKEN),
    "image.use": _image(Role.VIEWER),
    # Dockerfile, files, arguments, builds and their logs.
    "image.source": _image(Role.VIEWER),
    "image.create": SignedIn(),
    "image.modify": _image(Role.EDITOR),
    # Of a snapshot: to try it again reads the files of its workspace once more.
    "image.retake": AnyOf((Admin(), FromSource(_copyable, only_maker=False))),
    "image.delete": _shared("image", Role.MANAGER),
    "image.share": _shared("image", Role.MANAGER),
    "image.evict": _shared("image", Role.MANAGER),
    "image.transfer": _OWNED,
    # Who says what is built with stored secrets can read them.
    "image.secrets": _OWNED,
    "build.view": AnyOf(
        (
            Admin(),
            Owner("image__owner"),
            Granted("image", Role.VIEWER, path="image_id"),
            FromSource(_copyable, only_maker=True, path="image"),
        )
    ),
    "workspace.view": _of_stack(Role.VIEWER),
    # URLs that only the owner may open: not even an administrator.
    "workspace.open_as_owner": Owner(),
    # Each apart from the other two, so that a grant may leave one out.
    "workspace.logs": _of_stack(Role.VIEWER, Right.LOGS),
    "workspace.inspect": _of_stack(Role.VIEWER, Right.INSPECT),
    "workspace.create": SignedIn(),
    "workspace.modify": _of_stack(Role.EDITOR),
    "workspace.exec": _of_stack(Role.EDITOR, Right.TERMINAL),
    "workspace.attach": _of_stack(Role.EDITOR, Right.TERMINAL),
    # A snapshot or a clone: both show every file of it, as a terminal does.
    "workspace.copy": _of_stack(*_EDITS_IN_TERMINAL),
    # Those that belong to somebody else, too.
    "workspace.snapshots": _OWNED,
    "workspace.delete": _shared("workspace", Role.MANAGER),
    "workspace.share": _shared("workspace", Role.MANAGER),
    "workspace.transfer": _OWNED,
    "workspace.privileged": _capable(Capability.PRIVILEGED),
    "stack.view": _shared("stack", Role.VIEWER),
    "stack.create": SignedIn(),
    "stack.modify": _shared("stack", Role.EDITOR),
    # Whoever says where the files come from acts with the owner's rights on the host.
    "stack.source": _shared("stack", Role.MANAGER),
    "stack.delete": _shared("stack", Role.MANAGER),
    "stack.share": _shared("stack", Role.MANAGER),
    "stack.transfer": _OWNED,
    "sync.view": AnyOf(
        (Admin(), Owner("stack__owner"), Granted("stack", Role.VIEWER, path="stack_id"))
    ),
    "apitoken.view": Owner("user"),
    "apitoken.create": SignedIn(),
    "apitoken.modify": Owner("user"),
    "apitoken.delete": Owner("user"),
    "session.view": Owner("user"),
    "session.delete": Owner("user"),
    "user.view": Admin(),
    "user.modify": Admin(),
    "group.view": Admin(),
    "group.modify": Admin(),
    "auditentry.view": Admin(),
}
# What an action of a status table takes, where that is not to modify.
_VERBS: Final = {"delete": "delete", "snapshot": "copy", "clone": "copy", "evict": "evict"}


def allows(actor: Actor, action: str, obj: Model | None = None) -> bool:
    return RULES[action].allows(actor, obj)


def require(actor: Actor, action: str, obj: Model | None = None) -> None:
    """Raise unless the actor may; an object that may not even be seen is reported as absent."""
    if RULES[action].allows(actor, obj):
        return
    noun = action.split(".", maxsplit=1)[0]
    if obj is not None and not RULES[f"{noun}.view"].allows(actor, obj):
        raise NotFound(f"There is no such {noun}, or you may not see it.")
    raise NotAllowed(f"You may not {action_words(action)}. Ask an administrator.")


def visible(model_name: str, actor: Actor) -> Q:
    return RULES[f"{model_name}.view"].q(actor)


def permitted(action: str, actor: Actor) -> Q:
    """The filter of any rule: `Host.objects.filter(policy.permitted("host.images", user))`."""
    return RULES[action].q(actor)


def role_columns(model_name: str, actor: Actor) -> dict[str, Any]:
    """Annotations with which `allows` answers for a row that was read without a query more."""
    if not SignedIn().allows(actor, None):
        return {}
    held = live_grants(actor.pk, model_name, object_id=OuterRef("pk"))
    columns: dict[str, Any] = {
        "granted_role": Subquery(held.order_by("-role").values("role")[:1]),
        "granted_to": Value(actor.pk, output_field=UUIDField()),
    }
    if f"{model_name}.{Right.INSPECT}" in RULES:
        # Asked of every row that is answered; the other rights of one at a time.
        columns["granted_inspect"] = Exists(held.filter(inspect=True))
    if f"{model_name}.copy" in RULES:
        columns["granted_terminal"] = Exists(held.filter(terminal=True, role__gte=Role.EDITOR))
    if f"{model_name}.retake" in RULES:
        source = _copyable(actor).filter(pk=OuterRef("source_workspace"))
        columns["granted_source"] = Exists(source)
    return columns


def allowed_of(actor: Actor, obj: Model, actions: Iterable[str]) -> list[str]:
    """Those of a status table's actions that this actor may take on the object."""
    kind = obj._meta.model_name
    judged: dict[str, bool] = {}

    def may(name: str) -> bool:
        verb = _VERBS.get(name, "modify")
        if verb == "copy" and f"{kind}.copy" not in RULES:
            verb = "modify"
        if verb not in judged:
            judged[verb] = allows(actor, f"{kind}.{verb}", obj)
        # A snapshot is made again from its workspace.
        is_retake = name == "build" and getattr(obj, "kind", "") == "snapshot"
        return judged[verb] and (not is_retake or allows(actor, "image.retake", obj))

    return [name for name in actions if may(name)]
