"""`python -m agent run | once | plan | version`: the composition root."""

from __future__ import annotations

import argparse
import logging
import os
import platform
import signal
import sys
import threading
from typing import TYPE_CHECKING

from agent import clock
from agent.config import read_config
from agent.diff.view import Knowledge
from agent.errors import AgentError, ConfigError, Superseded
from agent.planner import make_plan
from agent.protocol import naming
from agent.protocol.session import EnrolRequest
from agent.runtime.docker import DockerRuntime
from agent.runtime.port import Look
from agent.server.http import HttpServer
from agent.store.database import Database
from agent.store.document import load_document
from agent.store.identity import Identity, load_identity, save_identity
from agent.store.journal import Journal
from agent.supervisor import EXIT_SUPERSEDED, Supervisor
from agent.version import VERSION

if TYPE_CHECKING:
    from agent.config import Config

log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m agent", description="The Trailer agent.")
    parser.add_argument("command", choices=["run", "once", "plan", "version"])
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
        config = read_config(os.environ)
        _start_logging(config.log_level)
        if command == "plan":
            return _plan(config)
        return _work(config, once=command == "once", lifeline=options.lifeline)
    except Superseded as problem:
        sys.stderr.write(f"{problem}\n")
        return EXIT_SUPERSEDED
    except AgentError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2


def _work(config: Config, *, once: bool, lifeline: bool = False) -> int:
    identity = _identity(config)
    supervisor = Supervisor(
        config,
        identity,
        runtime=DockerRuntime(config.engine_environment),
        server=HttpServer(config.server_url, token=identity.token),
    )
    if once:
        return supervisor.once()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: supervisor.stop())
    if lifeline:
        _stop_at_end_of_input(supervisor)
    code = supervisor.run()
    log.info("stopped, exit code %d", code)
    logging.shutdown()
    return code


def _stop_at_end_of_input(supervisor: Supervisor) -> None:
    def wait() -> None:
        # Not sys.stdin: its lock, held by this thread, would abort the interpreter's shutdown.
        while os.read(0, 4096):
            pass
        log.info("the server process is gone")
        supervisor.stop()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _identity(config: Config) -> Identity:
    """The stored identity, else the enrolment token is exchanged for one, once."""
    known = load_identity(config.state_dir)
    if known is not None:
        return known
    if not config.enrolment_token:
        raise ConfigError(
            f"The agent has no credential: {config.state_dir} holds no identity.json and "
            "TRAILER_ENROLMENT_TOKEN is not set. Enrol the host on the server's page."
        )
    reply = HttpServer(config.server_url).enrol(
        EnrolRequest(token=config.enrolment_token, agent_version=VERSION, hostname=platform.node())
    )
    identity = Identity(
        token=reply.token,
        host_id=reply.host_id,
        host_key=reply.host_key,
        host_name=reply.host_name,
    )
    save_identity(config.state_dir, identity)
    return identity


def _plan(config: Config) -> int:
    """What the next cycle would do, from the last good document; opens no session."""
    identity = load_identity(config.state_dir)
    state = load_document(config.state_dir)
    if identity is None or state is None:
        raise ConfigError("There is no state document yet: let the agent run once.")
    journal = Journal(Database(config.state_dir / "agent.sqlite3")).view()
    knows = Knowledge(
        host_id=identity.host_id,
        host_key=identity.host_key,
        owned_ids=journal.owned_ids,
        containers=journal.containers,
        applied=journal.applied,
        stopped_ids=journal.stopped_ids,
        builds=journal.builds,
        made_images=journal.made_images,
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


def _start_logging(level: str) -> None:
    logging.basicConfig(
        level=level if level in logging.getLevelNamesMapping() else "INFO",
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    for noisy in ("urllib3", "docker", "websockets"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
