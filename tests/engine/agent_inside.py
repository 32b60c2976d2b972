"""The real agent in this process, so that a test can ask for a look and see every cycle."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from agent.config import Config
from agent.host_network.addresses import HostAddresses
from agent.runtime.docker import DockerRuntime
from agent.server.http import HttpServer
from agent.store.identity import Identity
from agent.supervisor import Supervisor
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.apply.executor import Execution
    from agent.loop.wake import Reasons
    from agent.protocol.session import AddressRange
    from tests.engine.desired_host import DesiredHost
    from tests.ground.proxy import DockerApiProxy


class AgentInside:
    """All loops of the agent as threads of this process; `host` is what it is told to make, and
    `read_ranges` what its engine's machine uses: nothing, unless a test says how to look there."""

    def __init__(
        self,
        host: DesiredHost,
        docker_host: str,
        state_dir: Path,
        *,
        read_ranges: Callable[[], tuple[AddressRange, ...]] = tuple,
    ) -> None:
        self.host = host
        self._read_ranges = read_ranges
        self._docker_host = docker_host
        self._state_dir = state_dir
        self.supervisor = self._make()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._begun = 0
        self._ended = 0
        self._full_ended = 0

    def _make(self) -> Supervisor:
        config = Config(
            server_url=self.host.server.url,
            state_dir=self._state_dir,
            engine_environment={"DOCKER_HOST": self._docker_host},
        )
        return Supervisor(
            config,
            Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY),
            runtime=DockerRuntime(config.engine_environment),
            server=HttpServer(config.server_url, token=TOKEN),
            addresses=HostAddresses(lambda: "", read=self._read_ranges),
        )

    # --- life ----------------------------------------------------------------------------------

    def start(self) -> Self:
        self._count_cycles()
        self._thread = threading.Thread(target=self.supervisor.run, name="agent", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self.supervisor.stop()
        if self._thread is not None:
            self._thread.join(20)

    def restart(self) -> None:
        """As after an upgrade: the same folder, a new process would read it the same way."""
        self.stop()
        self.supervisor = self._make()
        self.start()

    def _count_cycles(self) -> None:
        cycle = self.supervisor.cycles.cycle

        def counted(reasons: Reasons) -> Execution | None:
            with self._lock:
                self._begun += 1
            try:
                return cycle(reasons)
            finally:
                with self._lock:
                    self._ended += 1
                    self._full_ended += reasons.full

        self.supervisor.cycles.cycle = counted  # type: ignore[method-assign]

    # --- waiting -------------------------------------------------------------------------------

    @property
    def cycles(self) -> int:
        """Cycles that have come to their end."""
        with self._lock:
            return self._ended

    def is_at_rest(self) -> bool:
        """The newest document is in force, nothing runs, nobody asked for a look, all is told."""
        parts = self.supervisor.parts
        state = parts.target.state()
        with self._lock:
            in_a_cycle = self._begun != self._ended
        return (
            state is not None
            and state.version == self.host.version
            and not in_a_cycle
            and parts.wake.is_quiet()
            and parts.executor.is_idle()
            and not parts.works.running_builds()
            and parts.outbox.is_empty()
        )

    def settle(self, timeout: float = 30.0) -> None:
        """Wait until the newest document is in place and the agent has come to rest."""
        self.supervisor.poll.nudge()
        eventually(self._rests, timeout, "the agent does not come to rest", interval=0.02)

    def _rests(self) -> bool:
        """At rest now, and no event of the engine is still on its way."""
        before = self.cycles
        if not self.is_at_rest():
            return False
        threading.Event().wait(0.15)
        return self.is_at_rest() and self.cycles == before

    def look_again_while_busy(self, timeout: float = 30.0) -> None:
        """One full observation that begins now; what it starts, and older work, may go on."""
        with self._lock:
            before = self._full_ended
        self.supervisor.parts.wake.request("test", full=True)
        eventually(lambda: self._full_ended > before, timeout, "no full look", interval=0.01)

    def look_again(self, timeout: float = 30.0) -> None:
        """One full observation that begins now, and the end of all it starts."""
        self.look_again_while_busy(timeout)
        self.settle(timeout)


def silent(agent: AgentInside, proxy: DockerApiProxy) -> None:
    """Fail unless the next full observation changes nothing on the engine."""
    proxy.forget_calls()
    agent.look_again()
    changes = [str(call) for call in proxy.mutating_calls]
    assert changes == [], f"a host at rest was changed: {changes}"
