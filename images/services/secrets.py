"""The secrets of an image's builds: what may be given, who may use them, and how they are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.protocol.build_secrets import (
    CAPABILITY,
    LONGEST_BYTES,
    MOST,
    NAME,
    build_problem,
)
from images.choices import ImageKind
from images.models import BuildSecret
from trailer import policy
from trailer.audit.record import MASK
from trailer.errors import Conflict, Invalid, NotAllowed
from trailer.sealed import seal, unseal
from trailer.validation import check_string

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from hosts.models import Host
    from images.models import Image
    from trailer.policy import Actor

_FIELD = "build_secrets"


def secrets_of(image: Image) -> dict[str, str]:
    """In the clear, for the agent that builds and for comparing."""
    return {row.name: unseal(row, "value_token") for row in image.build_secrets.all()}


def secret_names(image: Image) -> frozenset[str]:
    return frozenset(row.name for row in image.build_secrets.all())


@dataclass(frozen=True)
class SecretsChange:
    """`after` is empty unless `is_change`; `kept` are those whose value stays."""

    names: frozenset[str]
    before: frozenset[str]
    kept: frozenset[str]
    is_change: bool = False
    after: Mapping[str, str] = field(default_factory=dict, repr=False)

    def told(self) -> list[dict[str, Any]]:
        """For the audit: names only."""
        if not self.is_change:
            return []
        sides = (dict.fromkeys(sorted(names), MASK) for names in (self.before, self.names))
        return [dict(zip(("from", "to"), sides, strict=True), field=_FIELD)]


def secrets_change(image: Image, given: Any) -> SecretsChange:
    """What a request makes of them; one that does not name them leaves all as they are."""
    before = secret_names(image)
    if given is None:
        return SecretsChange(names=before, before=before, kept=before)
    stored = secrets_of(image)
    after = secrets_given(given, stored)
    return SecretsChange(
        names=frozenset(after),
        before=before,
        kept=frozenset(name for name, value in given.items() if value is None),
        is_change=after != stored,
        after=after,
    )


def secrets_given(given: Any, stored: Mapping[str, str]) -> dict[str, str]:
    """The whole map as it shall be: a null keeps what is stored under that name."""
    if not isinstance(given, dict) or len(given) > MOST:
        raise Invalid.field(_FIELD, f"Give at most {MOST} secrets, as names with text values.")
    values = {}
    for name, value in given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise Invalid.field(
                _FIELD,
                "A build secret's name has 1 to 128 letters, digits or _ - . and begins with a "
                "letter, a digit or _.",
            )
        values[name] = _value(name, value, stored)
    return values


def _value(name: str, value: Any, stored: Mapping[str, str]) -> str:
    place = f"{_FIELD}.{name}"
    if value is None:
        if name not in stored:
            raise Invalid.field(place, f"The build secret {name} has no stored value. Give one.")
        return stored[name]
    if not isinstance(value, str):
        raise Invalid.field(place, f"The value of {name} must be text.")
    if not value:
        raise Invalid.field(place, f"The build secret {name} is empty. Give a value, or drop it.")
    check_string(value, field=place, limit=LONGEST_BYTES)
    return value


def check_secrets(image: Image, names: Collection[str]) -> None:
    """Needs a checked image with its host, as they would be saved together."""
    if names and image.kind != ImageKind.BUILD:
        raise Invalid.field(_FIELD, "Only an image of kind build has this.")
    if problem := build_problem(image.dockerfile, image.build_args, names):
        raise Invalid.field("dockerfile", problem)


def check_agent(host: Host, names: Collection[str]) -> None:
    if problem := agent_problem(host, names):
        raise Conflict(problem, code="agent_too_old")


def agent_problem(host: Host, names: Collection[str]) -> str:
    """Why this host's agent can't build with them, or empty: one that knows nothing of them would
    build without. A host that was never heard of gets its agent later."""
    if not names or not host.capabilities or CAPABILITY in host.capabilities:
        return ""
    return f"The agent on host {host.name} is too old for build secrets; update it."


def check_use(actor: Actor, image: Image, kept: Collection[str]) -> None:
    """Who may change what is built with a secret can read it: editing is not enough."""
    if kept and not policy.allows(actor, "image.secrets", image):
        raise NotAllowed(
            f"The image {image.name} has build secrets that are not yours. Ask its owner for this "
            "change, or give all of them anew."
        )


def secrets_write(image: Image, values: Mapping[str, str]) -> None:
    image.build_secrets.all().delete()
    rows = [BuildSecret(image=image, name=name) for name in sorted(values)]
    for row in rows:
        row.value_token = seal(row, "value_token", values[row.name])
    BuildSecret.objects.bulk_create(rows)
