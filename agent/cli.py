"""`python -m agent run | once | plan | validate | overseer | guard | health | version`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING

from agent import clock
from agent.config import read_config
from agent.diff.view import Knowledge
from agent.enrolment import enrolled
from agent.errors import AgentError, ConfigError, Superseded
from agent.guard import table
from agent.health import HealthFile, health_path
from agent.host_network.addresses import HostAddresses
from agent.logs import start_logging
from agent.overseer.own_id import own_container_id
from agent.overseer.run import Overseer, Pace
from agent.overseer.status import tell_trouble
from agent.overseer.validate import validate
from agent.overseer.wanted import agent_login, load_agent, wanted_order
from agent.planner import make_plan
from agent.protocol import naming
from agent.protocol.redaction import redacted
from agent.runtime.docker import DockerRuntime
from agent.runtime.docker_agent import DockerAgents
from agent.runtime.docker_guard import find_guard
from agent.runtime.docker_place import place_problem
from agent.runtime.port import Look
from agent.server.http import HttpServer
from agent.server.plain_http import check_server_address
from agent.signals import on_signals
from agent.store.database import Database
from agent.store.document import load_document
from agent.store.identity import load_identity
from agent.store.journal import Journal
from agent.store.token import StoredToken
from agent.supervisor import EXIT_SUPERSEDED, Supervisor
from agent.version import VERSION

if TYPE_CHECKING:
    from agent.config import Config

log = logging.getLogger(__name__)
_END = (signal.SIGTERM, signal.SIGINT)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m agent", description="The Trailer agent.")
    parser.add_argument(
        "command",
        choices=["run", "once", "plan", "validate", "overseer", "guard", "health", "version"],
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=["on", "off", "status"],
        default="status",
        help="of guard: keep this machine's containers from metadata addresses, or no longer",
    )
    parser.add_argument(
        "--lifeline",
        action="store_true",
        help="end when standard input closes, that is when the process that started us is gone",
    )
    options = parser.parse_args(arguments)
    command = options.command
    if command == "version":
        sys.stdout.write(f"{VERSION}\n")
        return 0
    try:
        if command == "guard":
            return _guard(options.action)
        config = read_config(os.environ)
        start_logging(config.log_level)
        if command == "plan":
            return _plan(config)
        if command == "validate":
            return _validate(config)
        if command == "overseer":
            return _oversee(config)
        return _work(config, once=command == "once", lifeline=options.lifeline)
    except Superseded as problem:
        sys.stderr.write(f"{redacted(str(problem))}\n")
        return EXIT_SUPERSEDED
    except AgentError as problem:
        sys.stderr.write(f"{redacted(str(problem))}\n")
        return 2


def _work(config: Config, *, once: bool, lifeline: bool = False) -> int:
    check_server_address(config.server_url, allowed=config.plain_http)
    identity = enrolled(config, _server(config).enrol)
    supervisor = Supervisor(
        config,
        identity,
        runtime=DockerRuntime(config.engine_environment),
        server=_server(config, StoredToken(config.state_dir, identity)),
        agents=DockerAgents(config.engine_environment),
        find_guard=partial(find_guard, config.engine_environment, identity),
        addresses=_addresses(config),
    )
    if once:
        return supervisor.once()
    on_signals(dict.fromkeys(_END, supervisor.stop))
    if lifeline:
        _stop_at_end_of_input(supervisor)
    code = supervisor.run()
    log.info("stopped, exit code %d", code)
    logging.shutdown()
    return code


def _addresses(config: Config) -> HostAddresses:
    return HostAddresses(partial(place_problem, config.engine_environment))


def _server(config: Config, token: StoredToken | None = None) -> HttpServer:
    return HttpServer(config.server_url, token=token or "", plain_http=config.plain_http)


def _stop_at_end_of_input(supervisor: Supervisor) -> None:
    def wait() -> None:
        # Not sys.stdin: its lock, held by this thread, would abort the interpreter's shutdown.
        while os.read(0, 4096):
            pass
        log.info("the server process is gone")
        supervisor.stop()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _guard(action: str) -> int:
    """In the network that this process is in; no server and no engine is asked."""
    if action == "on":
        table.put()
    elif action == "off":
        table.remove()
    sys.stdout.write("blocked\n" if table.is_in_place() else "open\n")
    return 0


def _plan(config: Config) -> int:
    """What the next cycle would do, from the last good document; opens no session."""
    identity = load_identity(config.state_dir)
    state = load_document(config.state_dir)
    if identity is None or state is None:
        raise ConfigError("There is no state document yet: let the agent run once.")
    journal = Journal(Database(config.state_dir / "agent.sqlite3")).view()
    addresses = _addresses(config).look()
    knows = Knowledge(
        host_id=identity.host_id,
        host_key=identity.host_key,
        owned_ids=journal.owned_ids,
        containers=journal.containers,
        applied=journal.applied,
        stopped_ids=journal.stopped_ids,
        builds=journal.builds,
        made_images=journal.made_images,
        host_ranges=addresses.ranges,
        ranges_unseen=addresses.unseen,
    )
    names = {naming.container_name(workspace.spec.name) for workspace in state.workspaces}
    observed = DockerRuntime(config.engine_environment).observe(
        Look(
            container_names=frozenset(names),
            container_ids=journal.owned_ids,
            host_id=identity.host_id,
        )
    )
    plan = make_plan(state, observed, knows, now=clock.utc_now())
    sys.stdout.write(f"{plan.render()}\n")
    return 0


def _validate(config: Config) -> int:
    identity = load_identity(config.state_dir)
    if identity is None:
        raise ConfigError(f"There is nothing to prove: {config.state_dir} holds no identity.json.")
    check_server_address(config.server_url, allowed=config.plain_http)
    stop = threading.Event()
    on_signals(dict.fromkeys(_END, stop.set))
    # The agent at work may change its token meanwhile: the file is where the trial learns of it.
    token = StoredToken(config.state_dir, identity, writes=False)
    validate(
        _server(config, token),
        host_id=identity.host_id,
        engine_answers=DockerRuntime(config.engine_environment).info,
        health=HealthFile(health_path(config.state_dir, config.health_file)),
        stop=stop,
    )
    return 0


def _oversee(config: Config) -> int:
    """Ends with 0 when its work is done. Any other end lets the engine start it again, also the
    one by a signal: the engine sends that when it ends itself, and whoever stops the container by
    hand is obeyed by the engine."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    own_id = own_container_id()
    if not own_id:
        raise ConfigError("An overseer works only in a container that an agent has made.")
    engine = DockerAgents(config.engine_environment)
    Overseer(
        engine,
        own_id=own_id,
        wanted=lambda: wanted_order(config),
        login=lambda image: agent_login(config, image),
        load=lambda image: load_agent(config, engine, image),
        tell=partial(tell_trouble, config.state_dir),
        pace=Pace(patience=config.overseer_patience, first_pause=config.overseer_pause),
    ).run()
    return 0
