"""Secrets of a document stay out of the agent's log, plans, reports and journal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.protocol.state import RegistryCredential
from tests.agent.documents import image, workspace
from tests.agent.running import Launch, reaches

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.agent.fake_server import FakeServer

FIRST, SECOND, REGISTRY = "canary-first-11aa", "canary-second-22bb", "canary-registry-33cc"


def test_a_secret_that_changes_is_told_but_not_shown(
    launch: Launch,
    fake_server: FakeServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    credential = RegistryCredential(server="r.example.com", username="robot", password=REGISTRY)
    images = (image(credential=credential),)
    first = workspace(secret_env={"PASSWORD": FIRST}, env={"MODE": "plainly-shown"})
    fake_server.desire(images=images, workspaces=(first,))
    running = launch()
    reaches(fake_server, "running")
    second = workspace(revision=2, secret_env={"PASSWORD": SECOND}, env={"MODE": "other"})
    fake_server.desire(images=images, workspaces=(second,))
    reaches(fake_server, "running", revision=2)
    running.stop()
    told = {
        "log": caplog.text,
        "reports": repr(fake_server.events("w-web")) + repr(fake_server.cycles()),
        "journal": "".join(
            path.read_bytes().decode(errors="replace") for path in tmp_path.glob("agent.sqlite3*")
        ),
    }
    assert "secret_env" in told["reports"]
    assert "plainly-shown" in told["reports"]
    found = [
        (where, canary)
        for where, text in told.items()
        for canary in (FIRST, SECOND, REGISTRY)
        if canary in text
    ]
    assert found == []
    # The last good document must be on disk for a start without a server: for its owner alone.
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    kept = [path for path in files if SECOND in path.read_bytes().decode("latin-1")]
    assert kept
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
