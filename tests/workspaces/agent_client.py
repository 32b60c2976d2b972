"""An agent as the server sees it: speaks the protocol as one host's agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.test import Client

from agent.protocol.report import Report
from tests.factories import make_agent_token

if TYPE_CHECKING:
    from django.http import HttpResponse

    from hosts.models import Host

BASE = "/api/agent/v1"


class AgentClient:
    """Speaks the protocol as one host's agent."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.token = make_agent_token(host)
        self.epoch = host.epoch
        self.client = Client()

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Trailer-Epoch": str(self.epoch)}

    def get_state(self, etag: str = "") -> Any:
        return self.client.get(
            f"{BASE}/state", headers={**self.headers(), "If-None-Match": f'"{etag}"'}
        )

    def post(self, path: str, body: Any) -> Any:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.client.post(
            f"{BASE}/{path}", data=data, content_type="application/json", headers=self.headers()
        )

    def report(self, *items: Any) -> Any:
        return self.post("report", Report(epoch=self.epoch, items=items))


def etag_of(response: HttpResponse) -> str:
    return response.headers["ETag"].strip('"')
