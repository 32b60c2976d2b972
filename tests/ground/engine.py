"""A private Docker engine that acts as a host of its own, and can be broken at will."""

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Self

import docker
import requests

from tests.ground import hostnet, process
from tests.ground.hostnet import HostNumber
from tests.ground.wait import eventually

START_TIMEOUT_S = 60.0
# Of a container's start and end, a seventh is the garbage collection of dockerd and of the copies
# of itself that it starts for each; nothing here lives long enough to need it.
RARELY_COLLECTING = {"GOGC": "400"}
BUILT_IN_NETWORKS = ("bridge", "host", "none")


class PrivateEngine:
    """A dockerd with its own network namespace, hostname, identity, data, socket and cgroup.

    It never touches the engine of the machine, and several run side by side as several hosts.
    `options` are further dockerd arguments, such as `--live-restore`; `env` is added to its
    environment. With `disk_bytes` its data lie on a disk of that size, which can really be full.
    """

    def __init__(
        self,
        options: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        host: HostNumber | None = None,
        disk_bytes: int = 0,
    ) -> None:
        host = host or HostNumber.take()
        if host is None:
            raise RuntimeError("every number for a simulated host is taken on this machine")
        self.host = host
        self.options = list(options)
        self.env = dict(env or {})
        self.disk_bytes = disk_bytes
        self.folder = host.folder
        self.socket = self.folder / "d.sock"
        self.url = f"unix://{self.socket}"
        self.hostname = f"host{host.number}"
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen = False

    @property
    def address(self) -> str:
        """Address at which the host's published ports answer."""
        return self.host.address

    @property
    def data_root(self) -> Path:
        """Where the engine keeps its images and containers."""
        return self.folder / "data"

    @property
    def pid(self) -> int:
        """Process number of dockerd."""
        return int((self.folder / "d.pid").read_text())

    def create(self) -> Self:
        """Clear what a killed run left under this number, set up the host and start its engine."""
        hostnet.remove_all_traces(self.host)
        self.folder.mkdir(parents=True)
        hostnet.create_network(self.host)
        if self.disk_bytes:
            self.data_root.mkdir()
            process.run(
                "mount", "-t", "tmpfs", "-o", f"size={self.disk_bytes}", "t", self.data_root
            )
        settings = {
            "deprecated-key-path": str(self.folder / "key.json"),
            "insecure-registries": ["10.77.0.0/16"],
        }
        (self.folder / "daemon.json").write_text(json.dumps(settings))
        self.start()
        return self

    def start(self) -> None:
        """Start dockerd and wait until it answers."""
        # A killed one has its number until it is waited for, whoever killed it.
        self._wait_for_end()
        self._wait_for_containerd_to_end()
        # Then the number is anybody's, and a new dockerd would take that for a sign of life.
        (self.folder / "d.pid").unlink(missing_ok=True)
        # The hostname belongs to the engine's own UTS namespace, so that hosts can be told apart.
        set_name_and_start = 'hostname "$0" && exec "$@"'
        command = ["unshare", "--uts", "sh", "-c", set_name_and_start, self.hostname, "dockerd"]
        command += ["--config-file", f"{self.folder}/daemon.json", "-H", self.url]
        command += ["--data-root", str(self.data_root), "--exec-root", f"{self.folder}/exec"]
        command += ["--pidfile", f"{self.folder}/d.pid", "--cgroup-parent", f"/{self.host.name}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.on_host([*command, *self.options]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **RARELY_COLLECTING, **self.env},
                start_new_session=True,
            )
        eventually(self._answers_or_ended, START_TIMEOUT_S, f"{self.hostname} does not answer")
        if not self.answers():
            raise RuntimeError(f"dockerd of {self.hostname} ended:\n{self.log()}")

    def stop(self) -> None:
        """End dockerd in the orderly way, which stops the containers (without live restore)."""
        self._signal(signal.SIGTERM)
        self._wait_for_end()

    def kill9(self) -> None:
        """Kill dockerd outright; the containers' processes stay."""
        self._signal(signal.SIGKILL)
        self._wait_for_end()

    def restart(self) -> None:
        """Stop and start dockerd."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Suspend dockerd: connections are accepted by the kernel, but nothing answers."""
        self._signal(signal.SIGSTOP)
        self._frozen = True
        # A thread that still runs may answer once more.
        eventually(self._is_stopped, 5, f"{self.hostname} does not freeze", interval=0.005)

    def thaw(self) -> None:
        """Let a frozen dockerd continue."""
        if self._frozen:
            self._signal(signal.SIGCONT)
            self._frozen = False

    def cut(self) -> None:
        """Part the host from the network (its socket file stays reachable)."""
        hostnet.cut_network(self.host)

    def join(self) -> None:
        """End the partition."""
        hostnet.join_network(self.host)

    def destroy(self) -> None:
        """Remove the engine and every trace of it, in whatever state it is.

        Without its claim the number may be another's by now, so then nothing is touched.
        """
        if self.host.is_claimed:
            hostnet.remove_all_traces(self.host)
        if self._process is not None:
            self._process.wait()
        self.host.claim.close()

    def answers(self) -> bool:
        """Tell whether the engine answers a ping."""
        try:
            # With a version given, the client asks nothing before the ping.
            client = docker.DockerClient(base_url=self.url, version="1.41", timeout=2)
            with closing(client):
                return bool(client.ping())
        except (docker.errors.DockerException, requests.RequestException):
            return False

    def client(self, timeout: float = 30) -> docker.DockerClient:
        """Return a client of the engine, for the assertions of tests; the caller closes it."""
        return docker.DockerClient(base_url=self.url, timeout=int(timeout))

    def on_host(self, command: list[str]) -> list[str]:
        """Return the command that runs `command` in the host's network."""
        return ["nsenter", f"--net={hostnet.NAMESPACES / self.host.name}", *command]

    def clean(self) -> None:
        """Remove all containers, networks, volumes and untagged images; named images stay."""
        self.thaw()
        with closing(self.client()) as client:
            api = client.api
            eventually(lambda: remove_containers(api), 60, "containers stay")
            for network in api.networks():
                if network["Name"] in BUILT_IN_NETWORKS:
                    continue
                # The engine can lose track of an endpoint whose container died while it joined.
                for left in api.inspect_network(network["Id"])["Containers"].values():
                    api.disconnect_container_from_network(left["Name"], network["Id"], force=True)
                api.remove_network(network["Id"])
            for volume in api.volumes()["Volumes"] or []:
                api.remove_volume(volume["Name"], force=True)
            # Untagged remains of a build that a test broke off; the test images have names.
            client.images.prune(filters={"dangling": True})

    def log(self) -> str:
        """Return the end of dockerd's log."""
        return process.tail(self.folder / "log")

    def traces(self) -> list[str]:
        """List all that shows on the machine that this engine exists."""
        return hostnet.traces_of(self.host)

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def _answers_or_ended(self) -> bool:
        return self.answers() or (self._process is not None and self._process.poll() is not None)

    def _is_stopped(self) -> bool:
        threads = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return all(text.read_text().rpartition(")")[2].split()[0] == "T" for text in threads)

    def _wait_for_end(self) -> None:
        if self._process is not None:
            self._process.wait(60)

    def _wait_for_containerd_to_end(self) -> None:
        """Let a killed engine's containerd go first: a new dockerd would trust its pid file."""
        pidfile = self.folder / "exec/containerd/containerd.pid"
        if not pidfile.exists():
            return
        command = Path(f"/proc/{pidfile.read_text().strip()}/cmdline")

        def is_gone() -> bool:
            """Its number may be another program's by now; one that has ended has no command."""
            try:
                return str(self.folder) not in command.read_text()
            except OSError:
                return True

        eventually(is_gone, 10, f"containerd of {self.hostname} does not end")
        pidfile.unlink(missing_ok=True)


def remove_containers(api: docker.APIClient) -> bool:
    """Remove all containers, and tell whether none is left.

    A build that was broken off still removes its own; the engine then answers 409, and lists the
    container until it is gone.
    """
    for container in api.containers(all=True, quiet=True):
        try:
            api.remove_container(container["Id"], force=True, v=True)
        except docker.errors.NotFound:
            continue
        except docker.errors.APIError as error:
            if "already in progress" not in str(error):
                raise
    return not api.containers(all=True, quiet=True)
