"""The agent's log: every line, with its exception, passes the filter for secrets last."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING

from agent.protocol.redaction import LIVE, redacted

if TYPE_CHECKING:
    from types import TracebackType

    from agent.protocol.state import HostState, RegistryCredential

log = logging.getLogger(__name__)


class MaskedFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def start_logging(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MaskedFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    known = level in logging.getLevelNamesMapping()
    logging.basicConfig(level=level if known else "INFO", handlers=[handler])
    for noisy in ("urllib3", "docker", "websockets"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Python itself would write past every filter what the program or a thread dies of.
    sys.excepthook = _program_ends
    threading.excepthook = _thread_ends


def hush(state: HostState) -> None:
    """From now on no line shows a secret of this document."""
    for workspace in state.workspaces:
        LIVE.remember(*workspace.spec.secret_env.values())
    for image in state.images:
        LIVE.remember(*image.build_secrets.values())
    credentials: list[RegistryCredential | None] = [image.credential for image in state.images]
    credentials += [test.credential for test in state.registry_tests]
    for credential in (*credentials, state.agent_credential):
        if credential is not None:
            LIVE.remember(credential.password)


def _program_ends(
    kind: type[BaseException], problem: BaseException, trace: TracebackType | None
) -> None:
    log.critical("the agent ended", exc_info=(kind, problem, trace))


def _thread_ends(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
        log.error("a thread ended", exc_info=ended.exc_value)
