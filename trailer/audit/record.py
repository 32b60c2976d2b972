"""Writing audit rows: inside the caller's transaction, so that a change and its row live or die
together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trailer.audit.models import AuditEntry, Outcome
from trailer.context import origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import Model

    from trailer.context import Origin
    from trailer.policy import Actor

MASK: Final = "••••••"
_SECRET: Final = frozenset(
    {
        *("password", "password_token", "secret_env", "build_args"),
        *("credential", "webhook_secret", "secret_variables", "build_secrets"),
    }
)
_TEXT_SHOWN: Final = 200
_LIST_SHOWN: Final = 20


def record(
    action: str,
    obj: Model | None = None,
    *,
    actor: Actor = None,
    changes: Iterable[Mapping[str, Any]] = (),
    outcome: str = Outcome.DONE,
    actor_name: str = "",
    where: Origin | None = None,
) -> None:
    """`changes` are {field, from, to}; `where` is the request at hand unless it is given."""
    came = where or origin()
    AuditEntry.objects.create(
        actor_id=getattr(actor, "pk", None),
        actor_name=(actor_name or getattr(actor, "username", ""))[:150],
        via=came.via,
        token_name=came.token_name[:100],
        address=came.address,
        request_id=came.request_id[:64],
        action=action,
        kind=(obj._meta.model_name or "") if obj is not None else action.partition(".")[0],
        object_id=str(obj.pk) if obj is not None else "",
        object_name=str(obj)[:255] if obj is not None else "",
        changes=[_masked(change) for change in changes],
        outcome=outcome,
    )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What `after` sets to something else than `before` had."""
    return [
        {"field": name, "from": before.get(name), "to": value}
        for name, value in after.items()
        if before.get(name) != value
    ]


def row_differences(before: Model, after: Model, names: Iterable[str]) -> list[dict[str, Any]]:
    """The same for two states of one row; references are named by their text."""
    columns = list(names)
    return differences(_values(before, columns), _values(after, columns))


def _values(row: Model, names: list[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _masked(change: Mapping[str, Any]) -> dict[str, Any]:
    name = str(change.get("field", ""))
    secret = name.partition(".")[0] in _SECRET
    shown = {side: _shown(change.get(side), secret=secret) for side in ("from", "to")}
    return {"field": name, **shown}


def _shown(value: Any, *, secret: bool) -> Any:
    """Something that JSON holds and a page can show: masked, or cut to a readable length."""
    if value is None or value == "":
        return value
    if isinstance(value, dict):
        items = list(value.items())[:_LIST_SHOWN]
        return {str(key)[:_TEXT_SHOWN]: _shown(item, secret=secret) for key, item in items}
    if secret:
        return MASK
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_shown(item, secret=secret) for item in list(value)[:_LIST_SHOWN]]
    text = str(value)
    if len(text) <= _TEXT_SHOWN:
        return text
    return f"{text[:_TEXT_SHOWN]}… ({len(text)} characters)"
