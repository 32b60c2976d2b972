"""Changes that do not work: the sentence says what to do, and the ledger has a row of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import EngineError
from tests.agent.documents import image, workspace
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import pytest

    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch


def causes(server: FakeServer, kind: str) -> list[str]:
    return [e.cause for e in server.events("w-web") if e.event == kind]


def test_a_first_start_that_fails_is_in_the_ledger_once(
    fake_server: FakeServer,
    runtime: FakeRuntime,
    launch: Launch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.apply.failures.FIRST_DELAY", 0.2)
    tries: list[str] = []

    def refuse(container_id: str) -> None:
        tries.append(container_id)
        raise EngineError("port is already allocated")

    monkeypatch.setattr(runtime, "start_container", refuse)
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    eventually(lambda: len(tries) >= 3, 10)
    assert causes(fake_server, "error") == ["port is already allocated"]


def test_an_image_that_starts_no_program_says_what_to_set(
    fake_server: FakeServer,
    runtime: FakeRuntime,
    launch: Launch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise EngineError("No command specified")

    monkeypatch.setattr(runtime, "create_container", refuse)
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    eventually(lambda: fake_server.status_word("w-web") == "error", 10)
    status = fake_server.status("w-web")
    assert status is not None
    assert "starts no program by itself" in status.message
    assert "Set the command of the workspace" in status.message
