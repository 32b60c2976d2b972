"""The whole agent in this process: real HTTP to a fake server, an engine in memory."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.config import Config
from agent.runtime.fake import FakeRuntime
from agent.server.http import HttpServer
from agent.store.identity import Identity, load_identity, save_identity
from agent.store.token import StoredToken
from agent.supervisor import Supervisor
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN, FakeServer
from tests.ground.wait import eventually


class Running:
    """A supervisor in a thread."""

    def __init__(
        self, server: FakeServer, runtime: FakeRuntime, folder: Path, **options: Any
    ) -> None:
        config = Config(server_url=server.url, state_dir=folder)
        identity = load_identity(folder)
        if identity is None:
            identity = Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY)
            save_identity(folder, identity)
        http = HttpServer(server.url, token=StoredToken(folder, identity))
        self.supervisor = Supervisor(config, identity, runtime=runtime, server=http, **options)
        server.nudge = self.supervisor.poll.nudge
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.code = self.supervisor.run()

    def stop(self) -> int | None:
        self.supervisor.stop()
        self._thread.join(15)
        return self.code

    def ended(self) -> int | None:
        self._thread.join(15)
        return self.code


Launch = Callable[[], Running]


def reaches(server: FakeServer, word: str, workspace_id: str = "w-web", revision: int = 1) -> None:
    def there() -> bool:
        status = server.status(workspace_id)
        return status is not None and (status.status, status.revision) == (word, revision)

    eventually(there, 10, f"never {word}: {server.status(workspace_id)}")
