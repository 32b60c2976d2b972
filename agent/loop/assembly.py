"""Makes the agent's parts and ties them together, once per start."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from agent.apply.executor import Executor
from agent.apply.failures import Failures
from agent.apply.ops import Ops
from agent.apply.reporter import Reporter
from agent.fetch.client import HttpFetcher
from agent.health import HealthFile, health_path
from agent.host_facts import has_kvm
from agent.host_policy import policy_of
from agent.loop.ends import EndWatch
from agent.loop.parts import Parts
from agent.loop.session import Session
from agent.loop.target import Target
from agent.loop.wake import Wake
from agent.sessions.containers import Containers
from agent.sessions.manager import Sessions
from agent.store.journal import Journal
from agent.store.outbox import Outbox
from agent.store.previous_logs import PreviousLogs
from agent.store.runs import Runs
from agent.store.terminals import TerminalFiles
from agent.work.disk import DiskBrake
from agent.work.works import Works

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.config import Config
    from agent.fetch.registry import RegistryCheck
    from agent.host_network.addresses import HostAddresses
    from agent.runtime.port import Runtime
    from agent.server.port import Server
    from agent.store.database import Database
    from agent.store.identity import Identity


def make_parts(
    config: Config,
    identity: Identity,
    database: Database,
    *,
    runtime: Runtime,
    server: Server,
    registries: RegistryCheck,
    free_bytes: Callable[[str], int | None],
    on_session: Callable[[], None],
    addresses: HostAddresses,
) -> Parts:
    journal, outbox = Journal(database), Outbox(database)
    reporter, failures, wake = Reporter(outbox), Failures(), Wake()
    policy = policy_of(config)
    target = Target(config.state_dir, database, policy)
    health = HealthFile(health_path(config.state_dir, config.health_file))
    session = Session(server, runtime, target, on_open=on_session, on_signed_in=health.signed_in)
    disk = DiskBrake(root=lambda: runtime.data_root, settings=target.settings, free=free_bytes)
    previous = PreviousLogs(config.state_dir, runtime)
    works = Works(
        runtime=runtime,
        server=server,
        journal=journal,
        reporter=reporter,
        failures=failures,
        target=target,
        disk=disk,
        registries=registries,
        epoch=session.epoch,
        on_end=lambda: wake.request("work"),
        fetcher=HttpFetcher(),
        scratch=_emptied(config.state_dir / "fetched"),
    )
    return Parts(
        identity=identity,
        runtime=runtime,
        server=server,
        journal=journal,
        outbox=outbox,
        reporter=reporter,
        failures=failures,
        target=target,
        session=session,
        works=works,
        disk=disk,
        executor=Executor(Ops(runtime, journal, works, previous), workers=config.engine_workers),
        sessions=_sessions(config, runtime, journal, target, previous),
        wake=wake,
        health=health,
        policy=policy,
        addresses=addresses,
        ends=_ends(database, outbox, wake),
        has_kvm=has_kvm(),
    )


def _ends(database: Database, outbox: Outbox, wake: Wake) -> EndWatch:
    return EndWatch(
        database,
        Runs(database),
        outbox,
        look_again=lambda seconds: wake.request_within("ends", seconds),
    )


def _emptied(folder: Path) -> Path:
    """An agent that was killed leaves what it had fetched."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _sessions(
    config: Config, runtime: Runtime, journal: Journal, target: Target, previous: PreviousLogs
) -> Sessions:
    return Sessions(
        runtime=runtime,
        containers=Containers(runtime, journal, target),
        previous=previous,
        files=TerminalFiles(config.state_dir),
    )
