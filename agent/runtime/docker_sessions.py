"""Logs, exec and attach on a Docker engine; each has a connection of its own that can be cut."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent import clock
from agent.errors import EngineError, NotFound
from agent.protocol import naming
from agent.runtime import process_sessions
from agent.runtime.docker_connection import Connection, DockerTerminal
from agent.runtime.docker_streams import Demultiplexer, Plain
from agent.runtime.inner_network import connect_inside
from agent.runtime.session_port import ContainerRun, ExecRecord, LogRequest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from agent.runtime.docker_client import Connections

# Tells its number before it becomes the command: that is how the session is found again.
_TELL: Final = 'printf "%s:%s\\n" "$0" "$$"; '
_COMMAND: Final = _TELL + 'exec "$@"'
_SHELL: Final = _TELL + "command -v bash >/dev/null 2>&1 && exec bash; exec sh"
_TELL_LIMIT: Final = 200
_ENVIRONMENT: Final = ("TERM=xterm-256color",)
# The engine's own would swallow the shell's Ctrl-P.
_DETACH_KEYS: Final = "ctrl-@,ctrl-@,ctrl-@"
# A stream ends before the engine knows the code: milliseconds, or seconds on a busy machine.
_EXIT_PATIENCE: Final = 10.0
_START_PATIENCE: Final = 1.0
_NOT_RUN: Final = (126, 127)
_NO_PROGRAM: Final = "executable file not found"
_END_TRIES: Final = 3


class DockerSessions:
    """The session part of the port. Without `host_pids` processes are ended only from inside."""

    _engine: Connections
    host_pids = True

    def container_run(self, container_id: str) -> ContainerRun:
        raw = self._engine.run(lambda api: api.inspect_container(container_id))
        state, config = raw.get("State") or {}, raw.get("Config") or {}
        return ContainerRun(
            id=raw["Id"],
            name=str(raw.get("Name") or "").lstrip("/"),
            is_running=bool(state.get("Running")) and not state.get("Restarting"),
            workspace_id=(config.get("Labels") or {}).get(naming.LABEL_WORKSPACE, ""),
            has_tty=bool(config.get("Tty")),
            started_at=str(state.get("StartedAt") or ""),
            finished_at=str(state.get("FinishedAt") or ""),
            exit_code=int(state.get("ExitCode") or 0),
            pid=int(state.get("Pid") or 0),
            addresses=_addresses(raw),
            mount_targets=_mount_targets(raw),
        )

    def connect_port(self, run: ContainerRun, port: int) -> socket.socket:
        return connect_inside(run.id, run.pid, port, run.addresses)

    def container_logs(self, container_id: str, request: LogRequest) -> Connection:
        has_tty = self.container_run(container_id).has_tty
        params = {
            "stdout": 1,
            "stderr": 1,
            "follow": int(request.follow),
            "timestamps": int(request.timestamps),
            "tail": "all" if request.tail is None else str(request.tail),
        }
        if request.since:
            params["since"] = _unix_time(request.since)
        client: Any = self._engine.own_client(None)

        def ask(_: Any) -> Any:
            url = client._url("/containers/{0}/logs", container_id)
            return _checked(client, client._get(url, params=params, stream=True))

        response = self._engine.run(ask)
        return Connection(client, response, Plain() if has_tty else Demultiplexer())

    def start_exec(
        self, container_id: str, command: tuple[str, ...], tell: Callable[[ExecRecord], None]
    ) -> DockerTerminal:
        mark = f"trailer-{secrets.token_hex(8)}"
        script = _COMMAND if command else _SHELL
        wrapped = ("sh", "-c", script, mark, *command)
        try:
            terminal = self._exec(container_id, wrapped, tell)
        except EngineError as problem:
            if _NO_PROGRAM not in str(problem):
                raise
            return self._exec_without_shell(container_id, command, tell)
        inner_pid, first = _read_told(terminal, mark)
        if not inner_pid and terminal.exit_code() in _NOT_RUN:
            terminal.close()
            return self._exec_without_shell(container_id, command, tell)
        terminal.learned(
            inner_pid=inner_pid, host_pid=self._host_pid(terminal.record), first=first
        )
        tell(terminal.record)
        return terminal

    def _exec_without_shell(
        self, container_id: str, command: tuple[str, ...], tell: Callable[[ExecRecord], None]
    ) -> DockerTerminal:
        """The command alone; such a process can be ended only from the host."""
        if not command:
            raise EngineError(
                "This container has no shell (neither bash nor sh). Name a command to run."
            )
        terminal = self._exec(container_id, command, tell)
        terminal.learned(inner_pid=0, host_pid=self._host_pid(terminal.record), first=b"")
        tell(terminal.record)
        return terminal

    def _exec(
        self, container_id: str, command: tuple[str, ...], tell: Callable[[ExecRecord], None]
    ) -> DockerTerminal:
        client = self._engine.own_client(None)
        made = self._engine.run(
            lambda _: client.exec_create(
                container_id,
                list(command),
                stdin=True,
                tty=True,
                environment=list(_ENVIRONMENT),
                detach_keys=_DETACH_KEYS,
            )
        )
        record = ExecRecord(container_id=container_id, exec_id=str(made["Id"]))
        tell(record)
        response = self._engine.run(lambda _: _started(client, record.exec_id))
        return DockerTerminal(
            Connection(client, response, Plain()),
            resize=lambda columns, rows: self._engine.run(
                lambda api: api.exec_resize(record.exec_id, height=rows, width=columns)
            ),
            exit_code=lambda: self._exec_exit(record.exec_id),
            record=record,
        )

    def _host_pid(self, record: ExecRecord) -> int:
        """0 unless this agent sees the host's processes. A process that is just being started has
        no number yet."""
        deadline = clock.monotonic() + _START_PATIENCE
        while self.host_pids and clock.monotonic() < deadline:
            state = self._exec_state(record.exec_id)
            pid = int(state.get("Pid") or 0)
            if pid:
                return pid if process_sessions.is_in_container(pid, record.container_id) else 0
            if state.get("ExitCode") is not None or not state:
                break
            clock.sleep(0.02)
        return 0

    def _exec_state(self, exec_id: str) -> dict[str, Any]:
        try:
            return dict(self._engine.run(lambda api: api.exec_inspect(exec_id)))
        except NotFound:
            # Its container is gone.
            return {}

    def _exec_exit(self, exec_id: str) -> int | None:
        """The stream ends a moment before the engine knows the code."""
        deadline = clock.monotonic() + _EXIT_PATIENCE
        while True:
            state = self._exec_state(exec_id)
            if not state or not state.get("Running"):
                code = state.get("ExitCode")
                return None if code is None else int(code)
            if clock.monotonic() >= deadline:
                return None
            clock.sleep(0.02)

    def end_exec(self, record: ExecRecord) -> bool:
        state = self._exec_state(record.exec_id)
        lives = bool(state.get("Running"))
        pid = record.host_pid or (self._host_pid(record) if lives else 0)
        if pid and self.host_pids:
            return process_sessions.end_session(pid, record.container_id, leader_lives=lives)
        if not record.inner_pid:
            return not lives
        try:
            return self._end_inside(record, lives=lives)
        except EngineError:
            # Gone or stopped: so are all its processes.
            return not self._is_up(record.container_id)

    def _end_inside(self, record: ExecRecord, *, lives: bool) -> bool:
        """As root, and once more as the container's own user: either may lack the right."""
        if self._signalled(record, "HUP", "0", lives=lives) == 0:
            return True
        clock.sleep(0.2)
        for turn in range(_END_TRIES):
            user = "" if turn else "0"
            if self._signalled(record, "KILL", user, lives=lives) == 0:
                return True
            clock.sleep(0.1)
        return self._signalled(record, "KILL", "0", lives=lives) == 0

    def _signalled(self, record: ExecRecord, number: str, user: str, *, lives: bool) -> int | None:
        """How many were found; None where the engine has not said it, which proves nothing."""
        lives = lives and bool(self._exec_state(record.exec_id).get("Running"))
        word = "alive" if lives else "gone"
        command = ["sh", "-c", process_sessions.SCRIPT, "sh", str(record.inner_pid), number, word]
        made = self._engine.run(
            lambda api: api.exec_create(record.container_id, command, user=user)
        )
        output = bytes(self._engine.run(lambda api: api.exec_start(made["Id"]))).strip()
        return int(output) if output.isdigit() else None

    def _is_up(self, container_id: str) -> bool:
        try:
            return self.container_run(container_id).is_running
        except NotFound:
            return False

    def attach_container(self, container_id: str) -> DockerTerminal:
        run = self.container_run(container_id)
        client: Any = self._engine.own_client(None)
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "detachKeys": _DETACH_KEYS}

        def ask(_: Any) -> Any:
            return _checked(
                client,
                client._post(
                    client._url("/containers/{0}/attach", container_id),
                    params=params,
                    headers={"Connection": "Upgrade", "Upgrade": "tcp"},
                    stream=True,
                ),
            )

        response = self._engine.run(ask)
        return DockerTerminal(
            Connection(client, response, Plain() if run.has_tty else Demultiplexer()),
            resize=lambda columns, rows: self._engine.run(
                lambda api: api.resize(container_id, height=rows, width=columns)
            ),
            exit_code=lambda: self._container_exit(container_id),
        )

    def _container_exit(self, container_id: str) -> int | None:
        deadline = clock.monotonic() + _EXIT_PATIENCE
        while clock.monotonic() < deadline:
            try:
                run = self.container_run(container_id)
            except NotFound:
                return None
            if not run.is_running:
                return run.exit_code
            clock.sleep(0.05)
        return None


def _checked(client: Any, response: Any) -> Any:
    client._raise_for_status(response)
    return response


def _started(client: Any, exec_id: str) -> Any:
    return _checked(
        client,
        client._post_json(
            client._url("/exec/{0}/start", exec_id),
            headers={"Connection": "Upgrade", "Upgrade": "tcp"},
            data={"Tty": True, "Detach": False},
            stream=True,
        ),
    )


def _read_told(terminal: DockerTerminal, mark: str) -> tuple[int, bytes]:
    """The process's number within the container, and what followed that first line."""
    seen = b""
    while b"\n" not in seen and len(seen) < _TELL_LIMIT:
        data = terminal.read()
        if not data:
            return 0, seen
        seen += data
    line, _, rest = seen.partition(b"\n")
    told, _, number = line.strip().decode(errors="replace").partition(":")
    return (int(number), rest) if told == mark and number.isdecimal() else (0, seen)


def _unix_time(stamp: str) -> str:
    """Seconds and nanoseconds, the only form in which the engine takes them here."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return f"{seconds}.{fraction:0<9}"


def _addresses(raw: Mapping[str, Any]) -> tuple[str, ...]:
    networks = (raw.get("NetworkSettings") or {}).get("Networks") or {}
    found = (str((place or {}).get("IPAddress") or "") for place in networks.values())
    return tuple(sorted(address for address in found if address))


def _mount_targets(raw: Mapping[str, Any]) -> tuple[str, ...]:
    mounts = {str(mount.get("Destination") or "") for mount in raw.get("Mounts") or ()}
    mounts |= set((raw.get("HostConfig") or {}).get("Tmpfs") or ())
    return tuple(sorted(mounts - {""}))
