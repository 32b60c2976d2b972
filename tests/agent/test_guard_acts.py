"""How the rule against metadata addresses is set and removed: in the kernel, by a container."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from agent.errors import EngineUnavailable, GuardError, NotFound
from agent.guard import netlink, table
from agent.runtime.docker_guard import GUARD_NAME, ContainerGuard
from agent.store.identity import Identity
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN

IDENTITY = Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY)


@pytest.mark.parametrize("number", [errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT])
def test_in_a_kernel_without_tables_ours_is_not_there_and_cannot_be_set(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> list[bytes]:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(netlink, "ask", refuse)
    monkeypatch.setattr(netlink, "change", refuse)
    table.remove()
    assert not table.is_in_place()
    with pytest.raises(GuardError, match="no nf_tables"):
        table.put()


def test_a_missing_right_is_told_whatever_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[bytes]:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(netlink, "ask", refuse)
    monkeypatch.setattr(netlink, "change", refuse)
    for act_of in (table.remove, table.is_in_place, table.put):
        with pytest.raises(GuardError, match="CAP_NET_ADMIN"):
            act_of()


class EngineThatWaits:
    """What the guard asks of an engine whose container never ends."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.timeout: float | None = None

    def run(self, call: Any, **_: Any) -> Any:
        return call(self)

    def inspect_container(self, container_id: str) -> Any:
        if container_id == GUARD_NAME:
            raise NotFound("No such container.")
        return {"Image": "sha256:1", "Config": {"Image": "agent"}, "HostConfig": {}}

    def create_container_from_config(self, *_: Any, **__: Any) -> dict[str, str]:
        return {"Id": "new"}

    def start(self, _: str) -> None: ...

    def wait(self, _: str, timeout: float | None = None) -> Any:
        self.timeout = timeout
        raise EngineUnavailable("The container engine did not answer in time.")

    def remove_container(self, container_id: str) -> None:
        self.removed.append(container_id)


def test_a_container_of_the_guard_that_hangs_is_given_up_and_removed() -> None:
    engine: Any = EngineThatWaits()
    guard = ContainerGuard(engine, IDENTITY, own_id="agent")
    with pytest.raises(EngineUnavailable):
        guard.put()
    assert engine.timeout == 60
    assert engine.removed == ["new"]
