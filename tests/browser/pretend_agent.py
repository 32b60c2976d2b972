"""An agent without an engine: it speaks the real protocol and reports whatever a test tells it."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
import requests
from requests.adapters import HTTPAdapter

from agent.protocol.report import (
    BuildStatus,
    ImageObserved,
    RegistryTested,
    Report,
    ReportItem,
    WorkspaceStatus,
)
from agent.protocol.session import EngineInfo, Heartbeat, SessionRequest
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from tests.ground.server import RunningTrailer

VERSION = "0.1.0"
TOO_MANY = 429


class _From(HTTPAdapter):
    """Speaks from an address of the loopback network."""

    def __init__(self, number: uuid.UUID) -> None:
        self._address = "127." + ".".join(str(1 + byte % 250) for byte in number.bytes[:3])
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, source_address=(self._address, 0), **kwargs)


class PretendAgent:
    """A host of its own on the running server, online until the test says otherwise."""

    def __init__(self, trailer: RunningTrailer, *, heartbeat_interval: int = 3600) -> None:
        self.trailer = trailer
        name = f"host-{uuid.uuid4().hex[:8]}"
        body = {"name": name, "heartbeat_interval": heartbeat_interval}
        self.host = self._api("POST", "/hosts/", body)
        self._numbers = itertools.count(1)
        self.token = ""
        self.epoch = 0

    def connect(self, enrolment_token: str = "") -> PretendAgent:
        """Enrol, open a session and be heard."""
        if not enrolment_token:
            path = f"/hosts/{self.host['id']}/enrolment/"
            enrolment_token = self._api("POST", path, {})["token"]
        self.token = self._enrolled(enrolment_token)
        request = SessionRequest(agent_version=VERSION, protocol=1)
        self.epoch = self._post("session", msgspec.to_builtins(request))["epoch"]
        self.beat()
        return self

    def _enrolled(self, enrolment_token: str) -> str:
        """From an address of its own, as hosts have: enrolments are counted by address. A server
        in containers sees one for all, and says when there were too many."""
        with requests.Session() as session:
            session.mount("http://", _From(uuid.UUID(self.host["id"])))
            # In a list: a refusal counts as false, and only "too many" is waited for.
            [answer] = eventually(
                lambda: [self._answered(session, enrolment_token)],
                60,
                "too many enrolments for a whole minute",
                interval=1.0,
            )
        assert answer.ok, answer.text
        return str(answer.json()["token"])

    def _answered(self, session: requests.Session, enrolment_token: str) -> requests.Response:
        answer = session.post(
            f"{self.trailer.url}/api/agent/v1/enrol", json={"token": enrolment_token}, timeout=30
        )
        assert answer.status_code != TOO_MANY, answer.text
        return answer

    def beat(self, **fields: Any) -> None:
        engine = EngineInfo(name="pretended", version="27.0.0", api_version="1.46")
        beat = Heartbeat(
            epoch=self.epoch,
            agent_version=VERSION,
            engine=engine,
            cpu_count=8,
            memory_bytes=16 * 1024**3,
            **fields,
        )
        self._post("heartbeat", msgspec.to_builtins(beat))

    def says_workspace(self, workspace: Any, status: str, **fields: Any) -> None:
        """Report a status for the newest revision."""
        revision = self._api("GET", f"/workspaces/{workspace['id']}/")["revision"]
        self._report(
            WorkspaceStatus(
                seq=next(self._numbers),
                workspace_id=workspace["id"],
                revision=revision,
                status=status,
                **fields,
            )
        )

    def says_build(self, image: Any, status: str, **fields: Any) -> None:
        """Report on the image's newest build."""
        build = self._api("GET", f"/images/{image['id']}/")["current_build"]
        self._report(
            BuildStatus(
                seq=next(self._numbers),
                image_id=image["id"],
                build_id=build,
                status=status,
                **fields,
            )
        )

    def sees_image(self, image: Any, **fields: Any) -> None:
        """Report what the engine and the registry have of an image, outside a build."""
        number = next(self._numbers)
        self._report(ImageObserved(seq=number, image_id=image["id"], present=True, **fields))

    def says_registry(self, test_id: str, *, accepted: bool, message: str = "") -> None:
        """Report what came of trying a credential."""
        number = next(self._numbers)
        self._report(
            RegistryTested(seq=number, test_id=test_id, accepted=accepted, message=message)
        )

    def says(self, item: ReportItem) -> None:
        """Report an item as it is, with the next number."""
        self._report(msgspec.structs.replace(item, seq=next(self._numbers)))

    def state(self) -> Any:
        """The document that this host is given."""
        answer = self.trailer.session.get(
            f"{self.trailer.url}/api/agent/v1/state", headers=self._headers(), timeout=30
        )
        assert answer.ok, answer.text
        return answer.json()

    def writes_log(self, image: Any, offset: int, text: str | bytes) -> None:
        build = self._api("GET", f"/images/{image['id']}/")["current_build"]
        answer = self.trailer.session.post(
            f"{self.trailer.url}/api/agent/v1/builds/{build}/log?offset={offset}",
            data=text.encode() if isinstance(text, str) else text,
            headers=self._headers(),
            timeout=30,
        )
        assert answer.ok, answer.text

    def image(self, **fields: Any) -> Any:
        body = {"name": f"image-{uuid.uuid4().hex[:6]}", "host": self.host["id"], "kind": "pull"}
        if fields.get("kind", "pull") == "pull":
            body["reference"] = "busybox:latest"
        return self._api("POST", "/images/", body | fields)

    def workspace(self, **fields: Any) -> Any:
        body = {"name": f"w-{uuid.uuid4().hex[:8]}", "host": self.host["id"]}
        if "image" not in fields:
            body["image"] = self.image()["id"]
        return self._api("POST", "/workspaces/", body | fields)

    def read(self, path: str) -> Any:
        return self._api("GET", path)

    def _report(self, item: ReportItem) -> None:
        report = Report(epoch=self.epoch, items=(item,))
        reply = self._post("report", msgspec.to_builtins(report))
        assert not reply["refused"], reply

    def _api(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.trailer.api(method, path, json=body)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _post(self, path: str, body: Any) -> Any:
        answer = self.trailer.session.post(
            f"{self.trailer.url}/api/agent/v1/{path}",
            json=body,
            headers=self._headers(),
            timeout=30,
        )
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _headers(self) -> dict[str, str]:
        if not self.token:
            return {}
        return {"Authorization": f"Bearer {self.token}", "Trailer-Epoch": str(self.epoch)}
