"""The mark to measure against: docker-py's low-level client on the same engine, eight threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import docker

from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.ground.engine import PrivateEngine

THREADS = 8
# Without news.
LOOK_EVERY = 0.25


class RawEngine:
    """The same containers as Trailer's, made by the shortest sequence of calls."""

    def __init__(self, engine: PrivateEngine) -> None:
        self._api: Any = docker.APIClient(
            base_url=engine.url, version="1.41", num_pools=THREADS + 2
        )
        self._pool = ThreadPoolExecutor(THREADS)
        self._news = threading.Event()
        self._started: set[str] = set()
        self._events = self._api.events(decode=True, filters={"type": ["container", "network"]})
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def close(self) -> None:
        self._events.close()
        self._listener.join(10)
        self._pool.shutdown()
        self._api.close()

    def _listen(self) -> None:
        for event in self._events:
            if (event["Type"], event["Action"]) == ("container", "start"):
                self._started.add(event["Actor"]["Attributes"]["name"])
            self._news.set()

    def each(self, names: Iterable[str], act: Callable[[str], object]) -> None:
        list(self._pool.map(act, names))

    def create(self, name: str, **env: str) -> None:
        self._api.create_container_from_config(self._config(name, env), name=name)

    def deploy(self, name: str, **env: str) -> None:
        self.create(name, **env)
        self._api.start(name)

    def replace(self, name: str, **env: str) -> None:
        """What a careful script does: the new one exists before the old one goes."""
        self.create(f"{name}-next", **env)
        self._api.stop(name, timeout=2)
        self._api.remove_container(name)
        self._api.rename(f"{name}-next", name)
        self._api.start(name)

    def kill(self, name: str) -> None:
        self._api.kill(name)

    def stop(self, name: str) -> None:
        self._api.stop(name, timeout=2)

    def start(self, name: str) -> None:
        self._api.start(name)

    def remove(self, name: str) -> None:
        self._api.remove_container(name, force=True)

    def cut(self, name: str, network: str) -> None:
        self._api.disconnect_container_from_network(name, network)

    def join(self, name: str, network: str) -> None:
        self._api.connect_container_to_network(name, network)

    # --- seen from outside ---

    def running(self) -> dict[str, str]:
        """Name -> id of what runs now."""
        listed = self._api.containers(filters={"status": ["running"]})
        return {found["Names"][0].lstrip("/"): found["Id"] for found in listed}

    def every_name(self) -> list[str]:
        return [found["Names"][0].lstrip("/") for found in self._api.containers(all=True)]

    def inspect(self, name: str) -> Any:
        return self._api.inspect_container(name)

    def wait_for_starts(self, names: set[str]) -> None:
        """Told by the engine: who asks it again and again takes a core from what is measured."""
        self.wait(lambda: names <= self._started)
        assert names <= set(self.running()), "some that started do not run"
        self._started -= names

    def wait(self, come_true: Callable[[], bool], limit: float = 120.0) -> None:
        """Looks whenever something has happened on the engine."""
        deadline = time.monotonic() + limit
        while not come_true():
            if time.monotonic() > deadline:
                raise TimeoutError("the engine does not show what the bench waits for")
            self._news.wait(LOOK_EVERY)
            self._news.clear()

    def _config(self, name: str, env: dict[str, str]) -> dict[str, Any]:
        return {
            "Image": BUSYBOX,
            "Hostname": name,
            "Cmd": RUN_UNTIL_STOPPED,
            "Env": [f"{key}={value}" for key, value in env.items()],
            "Labels": {"bench": "raw"},
            "HostConfig": {"RestartPolicy": {"Name": "unless-stopped"}},
        }
