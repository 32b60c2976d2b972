"""Server and agents of different age: what the oldest supported agent says and reads still works.

The golden documents are what those versions wrote; whatever came later must be needed nowhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agent.protocol.state import decode_state
from tests.factories import make_admin, make_agent_token, make_host, make_image, make_workspace
from workspaces.control.compile import document_for

pytestmark = pytest.mark.django_db
FOLDER = Path(__file__).parent / "v1"
OLDEST = ("SessionRequest.full", "Heartbeat.minimal", "Heartbeat.full", "Report.minimal")


def golden(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for item in value.values() for name in names_in(item)}
    if isinstance(value, list):
        return {name for item in value for name in names_in(item)}
    return set()


def without(value: Any, known: set[str]) -> Any:
    """As a reader sees it that ignores what it does not know."""
    if isinstance(value, dict):
        return {key: without(item, known) for key, item in value.items() if key in known}
    if isinstance(value, list):
        return [without(item, known) for item in value]
    return value


def test_the_server_takes_what_the_oldest_agents_say() -> None:
    host = make_host("old", epoch=0)
    headers = {"authorization": f"Bearer {make_agent_token(host)}"}
    client = Client(headers=headers)

    def say(path: str, body: Any) -> Any:
        return client.post(f"/api/agent/v1/{path}", body, content_type="application/json")

    opened = say("session", golden("SessionRequest.full"))
    assert opened.status_code == 200
    epoch = opened.json()["epoch"]
    for name in OLDEST[1:]:
        path = "heartbeat" if name.startswith("Heartbeat") else "report"
        answer = say(path, golden(name) | {"epoch": epoch})
        assert answer.status_code == 200, (name, answer.content)


def test_an_old_agent_reads_the_present_document() -> None:
    """Only names that its own version wrote, or later ones that it passes over."""
    host, admin = make_host("old"), make_admin("root")
    make_workspace(host, admin, "box", image=make_image(host, admin))
    body = document_for(host.pk, "").body
    assert body is not None
    present = json.loads(body)
    known = names_in(golden("HostState.full"))
    state = decode_state(json.dumps(without(present, known)).encode())
    assert [workspace.spec.name for workspace in state.workspaces] == ["box"]


def test_a_document_of_the_first_version_still_asks_for_what_it_asked_for() -> None:
    state = decode_state(json.dumps(golden("HostState.full")).encode())
    assert state.workspaces
    # Orders that it does not know must not be read into it.
    assert not state.restored
    assert state.settings.maintenance == 0
