"""Only a signed push to the stack's branch deploys."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import urlencode

import pytest

from workspaces.stacks.deliveries import Delivery, Verdict, read_delivery
from workspaces.stacks.file.secret import Secret

KEY = "0123456789abcdef0123456789abcdef"
COMMIT = "a" * 40
PUSH = json.dumps({"ref": "refs/heads/main", "after": COMMIT}).encode()


def signed(body: bytes = PUSH, key: str = KEY) -> str:
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def github(body: bytes = PUSH, event: str = "push", **more: str) -> dict[str, str]:
    return {
        "X-GitHub-Event": event,
        "X-Hub-Signature-256": f"sha256={signed(body)}",
        "X-GitHub-Delivery": "d-1",
        **more,
    }


def read(headers: dict[str, str], body: bytes = PUSH, key: str = KEY) -> Delivery:
    return read_delivery(headers, body, secret=Secret(key), branch="main")


@pytest.mark.parametrize(
    "headers",
    [
        github(),
        {"x-hub-signature-256": f"sha256={signed()}"},
        {"X-Gitea-Event": "push", "X-Gitea-Signature": signed()},
        {
            "X-Forgejo-Event": "push",
            "X-Forgejo-Signature": signed(),
            "X-Gitea-Event": "push",
            "X-Gitea-Signature": signed(),
            "X-Hub-Signature-256": f"sha256={signed()}",
            "X-GitHub-Event": "push",
        },
        {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": KEY},
    ],
)
def test_a_signed_push_of_each_git_server_is_accepted(headers: dict[str, str]) -> None:
    delivery = read(headers)
    assert (delivery.verdict, delivery.commit_id) == (Verdict.ACCEPTED, COMMIT)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-GitHub-Event": "push"},
        {"X-Hub-Signature-256": signed()},
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": f"sha256={signed(key='another secret')}"},
        {"X-Hub-Signature-256": f"sha256={signed().upper()}"},
        {"X-Hub-Signature": f"sha1={signed()}"},
        {"X-Gitea-Signature": f"sha256={signed()}"},
        {"X-Gitlab-Token": KEY[:-1]},
        {"X-Gitlab-Token": "\u2026"},
        {"X-Gitlab-Token": KEY, "X-Hub-Signature-256": "sha256=0"},
    ],
)
def test_a_missing_or_wrong_signature_is_refused(headers: dict[str, str]) -> None:
    assert read(headers).verdict is Verdict.BAD_SIGNATURE


def test_one_changed_byte_breaks_the_signature() -> None:
    assert read(github(), PUSH.replace(b"main", b"mail")).verdict is Verdict.BAD_SIGNATURE


def test_without_a_secret_nothing_is_signed() -> None:
    headers = {"X-Hub-Signature-256": f"sha256={signed(key='')}", "X-Gitlab-Token": ""}
    assert read(headers, key="").verdict is Verdict.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("event", "payload", "reason"),
    [
        ("ping", {"zen": "x"}, "Only push events deploy; this is ping."),
        ("pull_request", {"ref": "refs/heads/main"}, "Only push events deploy"),
        ("push", {"ref": "refs/heads/dev"}, "The stack follows the branch main, not dev."),
        ("push", {"ref": "refs/heads/main2"}, "not main2"),
        ("push", {"ref": "refs/tags/main"}, "Only pushes to branches deploy"),
        ("push", {"ref": "refs/heads/main", "deleted": True}, "was deleted"),
        ("push", {"ref": "refs/heads/main", "after": "0" * 40}, "was deleted"),
        ("push", {"ref": 7}, "names no branch"),
        ("push", [], "names no branch"),
        ("push", None, "names no branch"),
    ],
)
def test_other_events_and_branches_are_ignored_with_the_reason(
    event: str, payload: object, reason: str
) -> None:
    body = json.dumps(payload).encode() if payload is not None else b"\xff{"
    delivery = read(github(body, event), body)
    assert delivery.verdict is Verdict.IGNORED
    assert reason in delivery.reason
    assert delivery.delivery_id == "d-1"


def test_a_push_sent_as_a_form_is_read_too() -> None:
    body = urlencode({"payload": PUSH.decode()}).encode()
    headers = github(body, **{"Content-Type": "application/x-www-form-urlencoded"})
    assert read(headers, body).verdict is Verdict.ACCEPTED


def test_a_body_nested_without_end_is_ignored() -> None:
    body = b"[" * 200_000
    assert read(github(body), body).verdict is Verdict.IGNORED
