"""Which container a workspace's session gets: only ours, found in the agent's own journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import NotFound
from agent.protocol import naming
from agent.protocol.sessions import BUSY, NOT_THERE

if TYPE_CHECKING:
    from agent.loop.target import Target
    from agent.runtime.port import Runtime
    from agent.runtime.session_port import ContainerRun
    from agent.store.journal import Journal


class Refused(Exception):
    """A session that cannot be; the sentence is for the user."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class Containers:
    def __init__(self, runtime: Runtime, journal: Journal, target: Target) -> None:
        self._runtime = runtime
        self._journal = journal
        self._target = target

    def current(self, workspace_id: str) -> ContainerRun | None:
        """The one under the workspace's name, else the oldest: a newer one is still on trial. But
        while the old one stands still for that, the new one is all there is."""
        runs = []
        for container_id in self._journal.containers_of(workspace_id):
            try:
                run = self._runtime.container_run(container_id)
            except NotFound:
                continue
            if run.workspace_id == workspace_id:
                runs.append(run)
        name = naming.container_name(self._name(workspace_id))
        named = next((run for run in runs if run.name == name), runs[0] if runs else None)
        if named is None or named.is_running:
            return named
        return next((run for run in runs if run.is_running), named)

    def present(self, workspace_id: str) -> ContainerRun:
        run = self.current(workspace_id)
        if run is None:
            raise Refused("This workspace has no container yet. Wait until it runs.", NOT_THERE)
        return run

    def running(self, workspace_id: str) -> ContainerRun:
        run = self.present(workspace_id)
        if not run.is_running:
            raise Refused("This workspace is not running. Start it first.", BUSY)
        return run

    def _name(self, workspace_id: str) -> str:
        state = self._target.state()
        workspaces = state.workspaces if state else ()
        return next((w.spec.name for w in workspaces if w.id == workspace_id), "")
