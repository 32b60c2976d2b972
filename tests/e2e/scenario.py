"""A user's moves through the REST API of a running Trailer, as short verbs for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.server import RunningTrailer


class User:
    """Drives one running Trailer with a token; every verb asserts its answer."""

    def __init__(self, trailer: RunningTrailer) -> None:
        self.trailer = trailer

    def get(self, path: str) -> Any:
        reply = self.trailer.api("GET", path)
        assert reply.status_code == 200, f"{path}: {reply.status_code} {reply.text}"
        return reply.json()

    def post(self, path: str, body: Any = None, *, status: int = 202) -> Any:
        reply = self.trailer.api("POST", path, json={} if body is None else body)
        assert reply.status_code == status, f"{path}: {reply.status_code} {reply.text}"
        return reply.json()

    def patch(self, path: str, body: Any) -> Any:
        reply = self.trailer.api("PATCH", path, json=body)
        assert reply.status_code == 200, f"{path}: {reply.status_code} {reply.text}"
        return reply.json()

    def delete(self, path: str) -> None:
        reply = self.trailer.api("DELETE", path)
        assert reply.status_code == 204, f"{path}: {reply.status_code} {reply.text}"

    def online_host(self) -> Any:
        """The local host, once its agent has been heard."""

        def online() -> Any:
            hosts = self.get("/hosts/")["results"]
            return next((host for host in hosts if host["status"] == "online"), None)

        return eventually(online, 30, "the local host is not online")

    def image(self, reference: str = BUSYBOX, name: str = "") -> Any:
        host = self.online_host()
        body = {"name": name or "busybox", "host": host["id"], "kind": "pull"}
        return self.post("/images/", body | {"reference": reference}, status=201)

    def workspace(self, name: str, **fields: Any) -> Any:
        """Create one that runs until it is stopped; the image is made when none is given."""
        if "image" not in fields:
            images = self.get("/images/?name=busybox")["results"]
            fields["image"] = (images[0] if images else self.image())["id"]
        fields.setdefault("command", RUN_UNTIL_STOPPED)
        fields.setdefault("drain_timeout", 2)
        body = {"name": name, "host": self.online_host()["id"], **fields}
        return self.post("/workspaces/", body, status=201)

    def wait_for(self, workspace: Any, status: str, timeout: float = 30) -> Any:
        """The workspace, once it has this status for its newest revision."""

        def arrived() -> Any:
            seen = self.get(f"/workspaces/{workspace['id']}/")
            settled = seen["observed_revision"] == seen["revision"]
            assert seen["status"] == status, f"{seen['status']}: {seen['message']}"
            return seen if settled else None

        return eventually(arrived, timeout, f"{workspace['name']} is not {status}")

    def running(self, name: str, **fields: Any) -> Any:
        return self.wait_for(self.workspace(name, **fields), "running")

    def clear(self, client: docker.DockerClient) -> None:
        """Delete everything that can be made, and wait until the agent has removed it."""
        names = []
        for kind in ("stacks", "workspaces", "images", "registries", "networks", "volumes"):
            for found in self.get(f"/{kind}/?page_size=500")["results"]:
                confirmed = f"?confirm={found['name']}" if kind == "volumes" else ""
                # A stack takes its workspaces with it, perhaps just now.
                reply = self.trailer.api("DELETE", f"/{kind}/{found['id']}/{confirmed}")
                assert reply.status_code in {204, 404}, reply.text
                names.append(found.get("container_name", ""))

        def gone() -> bool:
            left = {name for found in client.api.containers(all=True) for name in found["Names"]}
            return not left & {f"/{name}" for name in names}

        eventually(gone, 60, "a container was left")

    # --- images ---

    def built_image(self, name: str, dockerfile: str, **fields: Any) -> Any:
        body = {"name": name, "host": self.online_host()["id"], "kind": "build", **fields}
        return self.post("/images/", body | {"dockerfile": dockerfile}, status=201)

    def pulled_image(self, name: str, reference: str, **fields: Any) -> Any:
        body = {"name": name, "host": self.online_host()["id"], "kind": "pull", **fields}
        return self.post("/images/", body | {"reference": reference}, status=201)

    def registry(self, server: str, username: str, password: str) -> Any:
        body = {"server": server, "username": username, "password": password}
        return self.post("/registries/", body, status=201)

    def wait_for_image(self, image: Any, status: str, timeout: float = 40) -> Any:
        def arrived() -> Any:
            seen = self.get(f"/images/{image['id']}/")
            assert seen["status"] == status, f"{seen['status']}: {seen['message']}"
            return seen

        return eventually(arrived, timeout, f"image {image['name']} is not {status}")

    def build_log(self, image: Any, offset: int = 0) -> tuple[str, int, bool]:
        """(text, next offset, complete) of an image's newest build."""
        build = self.get(f"/images/{image['id']}/")["current_build"]
        reply = self.trailer.api("GET", f"/builds/{build}/log/?offset={offset}")
        assert reply.status_code == 200, reply.text
        following = int(reply.headers["Trailer-Log-Offset"])
        return reply.text, following, reply.headers["Trailer-Log-Complete"] == "true"

    def replaces(self, workspace_id: str) -> int:
        """How often its container was replaced, as its ledger tells."""
        rows = self.get(f"/workspaces/{workspace_id}/events/")["results"]
        return sum("the container was replaced" in row["summary"].lower() for row in rows)

    def causes(self, workspace: Any) -> list[tuple[str, str]]:
        """(kind, cause) of a workspace's ledger, newest first."""
        rows = self.get(f"/workspaces/{workspace['id']}/events/")["results"]
        return [(row["kind"], row["cause"]) for row in rows]
