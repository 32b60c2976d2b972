"""Webhook deliveries: is it signed, and is it a push to the stack's branch? Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.stacks.file.secret import Secret

MIN_SECRET_LENGTH: Final = 32
# Header -> what stands before the hexadecimal HMAC-SHA256 of the raw body.
_SIGNATURES: Final = {
    "x-hub-signature-256": "sha256=",
    "x-gitea-signature": "",
    "x-forgejo-signature": "",
    "x-gogs-signature": "",
}
_PLAIN_HEADER: Final = "x-gitlab-token"
_EVENTS: Final = {
    "x-github-event": "push",
    "x-gitea-event": "push",
    "x-forgejo-event": "push",
    "x-gogs-event": "push",
    "x-gitlab-event": "push hook",
}
# GitLab sends a delivery that failed again under the same key, but another event number.
_IDS: Final = (
    *("x-github-delivery", "x-gitea-delivery", "x-forgejo-delivery", "x-gogs-delivery"),
    *("idempotency-key", "x-gitlab-event-uuid"),
)
_HEADS: Final = "refs/heads/"


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    IGNORED = "ignored"
    BAD_SIGNATURE = "bad_signature"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """`reason` is a sentence; `delivery_id` is the sender's own number, not signed, and empty when
    it has none; `signed_digest` is of the body, empty when its sender does not sign it."""

    verdict: Verdict
    reason: str = ""
    commit_id: str = ""
    delivery_id: str = ""
    signed_digest: str = ""


def read_delivery(
    headers: Mapping[str, str], body: bytes, *, secret: Secret, branch: str
) -> Delivery:
    """The signature first: nothing of an unsigned body is looked at."""
    given = {name.lower(): value for name, value in headers.items()}
    delivery_id = next((given[name][:200] for name in _IDS if given.get(name)), "")
    if not _is_signed(given, body, secret):
        return Delivery(
            verdict=Verdict.BAD_SIGNATURE,
            reason="The signature is missing or was not made with this stack's webhook secret.",
            delivery_id=delivery_id,
        )
    reason, commit_id = _push_to(given, body, branch)
    return Delivery(
        verdict=Verdict.IGNORED if reason else Verdict.ACCEPTED,
        reason=reason,
        commit_id=commit_id,
        delivery_id=delivery_id,
        signed_digest="" if _PLAIN_HEADER in given else hashlib.sha256(body).hexdigest(),
    )


def _is_signed(given: Mapping[str, str], body: bytes, secret: Secret) -> bool:
    """Every signature that is there must be right, so that a weaker one can't stand in."""
    if not secret:
        return False
    key = secret.reveal().encode()
    expected = hmac.new(key, body, hashlib.sha256).hexdigest()
    verdicts = [
        hmac.compare_digest(given[name].encode(), f"{prefix}{expected}".encode())
        for name, prefix in _SIGNATURES.items()
        if name in given
    ]
    if _PLAIN_HEADER in given:
        # GitLab sends the secret itself instead of a signature.
        verdicts.append(hmac.compare_digest(given[_PLAIN_HEADER].encode(), key))
    return bool(verdicts) and all(verdicts)


def _push_to(given: Mapping[str, str], body: bytes, branch: str) -> tuple[str, str]:
    """Why it is no push to the branch (empty when it is one), and the pushed commit."""
    for name, expected in _EVENTS.items():
        event = given.get(name)
        if event is not None and event.lower() != expected:
            return f"Only push events deploy; this is {event[:60]}.", ""
    payload = _payload(given, body)
    ref = payload.get("ref")
    if not isinstance(ref, str):
        return "The body names no branch (ref).", ""
    if not ref.startswith(_HEADS):
        return f"Only pushes to branches deploy; this is {ref[:100]}.", ""
    if ref != f"{_HEADS}{branch}":
        return f"The stack follows the branch {branch}, not {ref[len(_HEADS) :][:100]}.", ""
    after = payload.get("after")
    commit_id = after if isinstance(after, str) else ""
    if payload.get("deleted") is True or (commit_id and not commit_id.strip("0")):
        return f"The branch {branch} was deleted; what is deployed stays.", ""
    return "", commit_id[:64]


def _payload(given: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The body is JSON, or a form with JSON in its field `payload`, as GitHub offers."""
    try:
        text = body.decode()
        if given.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            text = parse_qs(text, max_num_fields=10).get("payload", [""])[0]
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
