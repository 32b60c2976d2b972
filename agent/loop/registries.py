"""Tries registry credentials that a user wants tested; each once, and none holds a cycle back."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from agent.engine_requests import Credential
from agent.errors import EngineError, EngineUnavailable, FetchCancelled, RegistryRefused
from agent.fetch.cancellation import Cancellation
from agent.protocol.registries import rule_of

if TYPE_CHECKING:
    from agent.apply.reporter import Reporter
    from agent.fetch.registry import RegistryCheck
    from agent.loop.target import Target
    from agent.protocol.state import DesiredRegistryTest
    from agent.runtime.port import Runtime

log = logging.getLogger(__name__)

_AT_ONCE = 4
_REFUSALS = ("401", "unauthorized", "denied", "incorrect username or password")


class RegistryTests:
    def __init__(
        self, *, runtime: Runtime, target: Target, reporter: Reporter, registries: RegistryCheck
    ) -> None:
        self._runtime = runtime
        self._target = target
        self._reporter = reporter
        self._registries = registries
        self._cancellation = Cancellation()
        self._lock = threading.Lock()
        self._begun: set[str] = set()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="registry")

    def follow(self) -> None:
        """The document changed: begin what is new in it. A dead agent's are begun again, since
        signing in twice does no harm."""
        state = self._target.state()
        tests = state.registry_tests if state is not None else ()
        with self._lock:
            new = [test for test in tests if test.id not in self._begun]
            self._begun = {test.id for test in tests}
        for test in new:
            self._pool.submit(self._try, test)

    def shutdown(self) -> None:
        self._cancellation.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _try(self, test: DesiredRegistryTest) -> None:
        try:
            self._reporter.registry_tested(test.id, self.why_not(test))
        except FetchCancelled:
            # The agent stops; the next one tries it.
            return
        except Exception:
            # The thread belongs to a pool: without this line a bug would vanish in a future.
            log.exception("a registry credential could not be tested")

    def why_not(self, test: DesiredRegistryTest) -> str:
        """Empty when the registry let the engine in. Raises FetchCancelled."""
        given = test.credential
        credential = Credential(
            server=given.server, username=given.username, password=given.password
        )
        state = self._target.state()
        try:
            rule = rule_of(state) if state else None
            self._registries.server(given.server, rule, self._cancellation)
            self._runtime.sign_in(credential)
        except RegistryRefused as problem:
            return str(problem)
        except EngineUnavailable as problem:
            return f"The registry {given.server} could not be asked in time. {problem}"
        except EngineError as problem:
            if any(word in str(problem).lower() for word in _REFUSALS):
                return f"The registry {given.server} refused this username and password."
            return f"The registry {given.server} could not be asked: {problem}"
        return ""
