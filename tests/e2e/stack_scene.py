"""A running Trailer with a git server: stacks as a user of both meets them."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.errors import NotFound

from tests.e2e.scenario import User
from tests.ground.images import BUSYBOX, HTTPD
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.gitserver import GitRepository, GitServer
    from tests.ground.server import RunningTrailer

SECRET = "a webhook secret that is long enough"
# Finishes what it began when it is told to stop, as servers do. $$ is a dollar sign in the file.
_SERVE = (
    "mkdir /page; echo {said} > /page/index.html; httpd -f -p 80 -h /page & "
    "trap 'kill $$!; sleep 0.3; exit 0' TERM; wait"
)
_HEALTHY = ["CMD", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1/"]


def web(said: str, **changes: Any) -> dict[str, Any]:
    """A web server that says one word, with a health check."""
    return {
        "image": HTTPD,
        "command": ["sh", "-c", _SERVE.format(said=said)],
        "environment": {"SAID": said},
        "healthcheck": {"test": _HEALTHY, "interval": "0.2s", "timeout": "5s", "retries": 2},
        "x-trailer": {
            "update_policy": "if_missing",
            "drain_timeout": "2s",
            "startup_timeout": "10s",
        },
        **changes,
    }


def client() -> dict[str, Any]:
    """Something on the stack's network to ask from."""
    return {
        "image": BUSYBOX,
        "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"],
        "x-trailer": {"update_policy": "if_missing", "drain_timeout": "1s"},
    }


def file_of(*, needs: dict[str, Any] | None = None, **services: Any) -> dict[str, str]:
    """JSON is YAML too."""
    wanted = {"x-trailer": {"needs": needs}} if needs else {}
    return {"trailer.yml": json.dumps({"services": services, **wanted}, indent=1)}


@dataclass
class Site:
    trailer: RunningTrailer
    git: GitServer
    engine: docker.DockerClient

    @property
    def user(self) -> User:
        return User(self.trailer)

    def stack(self, repository: GitRepository, **fields: Any) -> dict[str, Any]:
        body = {
            "name": repository.name,
            "host": self.user.online_host()["id"],
            "repository": repository.url,
            "webhook_secret": SECRET,
            "poll_interval": 0,
            **fields,
        }
        made: dict[str, Any] = self.user.post("/stacks/", body, status=201)
        return made

    def seen(self, stack: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.user.get(f"/stacks/{stack['id']}/")
        return found

    def arrived(
        self, stack: dict[str, Any], status: str, *, commit: str = "", timeout: float = 60
    ) -> dict[str, Any]:
        """The stack, once it has this status at this commit and no sync is under way."""

        def there() -> Any:
            seen = self.seen(stack)
            assert seen["status"] == status, f"{seen['status']}: {seen['message']}"
            assert not commit or seen["deployed_commit"] == commit, seen["message"]
            assert seen["last_sync"]["phase"] == "done", seen["last_sync"]
            return seen

        found: dict[str, Any] = eventually(
            there, timeout, f"{stack['name']} is not {status}", 0.25
        )
        return found

    def webhook(self, stack: dict[str, Any], branch: str = "main") -> Any:
        body = json.dumps({"ref": f"refs/heads/{branch}"}).encode()
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        return self.trailer.session.post(
            f"{self.trailer.url}/webhooks/stacks/{stack['id']}/",
            data=body,
            headers={
                "X-Hub-Signature-256": f"sha256={signature}",
                "X-GitHub-Event": "push",
                "Content-Type": "application/json",
            },
            timeout=30,
        )

    def container(self, stack: dict[str, Any], service: str) -> Any:
        return self.engine.containers.get(f"trailer-{stack['name']}-{service}")

    def said(self, stack: dict[str, Any], service: str = "web") -> str:
        """What the service answers to another one that calls it by its name."""

        def answer() -> str:
            # The engine loses the output of a command that ends at once now and then.
            asked = self.container(stack, "client").exec_run(
                ["wget", "-q", "-O", "-", f"http://{service}/"]
            )
            assert asked.exit_code == 0, asked.output
            return str(asked.output.decode().strip())

        return str(eventually(answer, 10, f"{service} says nothing"))

    def names(self, stack: dict[str, Any]) -> list[str]:
        found = self.engine.api.containers(
            all=True, filters={"label": f"trailer.stack={stack['id']}"}
        )
        return sorted(str(row["Names"][0]).lstrip("/") for row in found)

    def remove(self, stack: dict[str, Any]) -> None:
        self.user.delete(f"/stacks/{stack['id']}/")
        eventually(lambda: not self.names(stack), 30, "the stack's containers are still there")

        def no_network() -> bool:
            try:
                self.engine.networks.get(f"trailer-{stack['name']}")
            except NotFound:
                return True
            return False

        eventually(no_network, 30, "the stack's network is still there")
