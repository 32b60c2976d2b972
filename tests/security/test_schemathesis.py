"""Requests that Schemathesis makes of the whole schema, as every role: no answer is 5xx."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

import schemathesis
from django.test import TestCase
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from schemathesis.core.result import Ok

from tests.architecture.scene import AccessScene, undone
from tests.factories import api_client
from tests.openapi import openapi

if TYPE_CHECKING:
    from schemathesis import Case

EXAMPLES = 2
# An agent that is not there is told as 503 with a sentence, by contract.
TOLD = 503


class TestWholeSchema(TestCase):
    scene: ClassVar[AccessScene]
    clients: ClassVar[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        scene = cls.scene = AccessScene()
        held = dict(reversed([(role, client) for client, role in scene.holders["workspace"]]))
        cls.clients = {
            "anonymous": scene.clients["anonymous"],
            "stranger": scene.clients["stranger"],
            "viewer": held[1],
            "editor": held[2],
            "manager": held[3],
            "owner": api_client(scene.owner),
            "admin": scene.clients["admin"],
            "host token": scene.clients["its host by Bearer"],
        }
        for client in cls.clients.values():
            client.raise_request_exception = False

    def test_no_request_breaks_the_server(self) -> None:
        schema = schemathesis.openapi.from_dict(openapi())
        broken: list[str] = []
        seen: set[str] = set()

        def tried(case: Case[Any]) -> None:
            seen.add(f"{case.method} {case.path}")
            broken.extend(self._broken(case))

        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            strategy = found.ok().as_strategy(generation_mode=GenerationMode.POSITIVE)
            quick = settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            quick(given(strategy)(tried))()
        assert broken == []
        paths = openapi()["paths"].values()
        assert len(seen) == sum(len(set(methods) - {"parameters"}) for methods in paths)

    def _broken(self, case: Case[Any]) -> list[str]:
        address, body = self._address(case), _body(case)
        found = []
        for who, client in self.clients.items():
            with undone():
                answer = client.generic(
                    case.method, address, body, content_type="application/json"
                )
                if answer.streaming:
                    b"".join(answer.streaming_content)
            if answer.status_code >= 500 and answer.status_code != TOLD:
                found.append(f"{answer.status_code} {who} {case.method} {address} {body!r}")
        return found

    def _address(self, case: Case[Any]) -> str:
        """Of real objects where there is one of the kind: past 404 is where faults are."""
        address, before = "", ""
        for part in case.path.split("/"):
            kind = "registry" if before == "registries" else before.removesuffix("s")
            if part.startswith("{"):
                drawn = str((case.path_parameters or {}).get(part.strip("{}"), ""))
                address += self.scene.ids.get(kind, drawn)
            else:
                address += part
            address, before = f"{address}/", part
        query = urlencode(case.query or {}, doseq=True, errors="replace")
        return address.removesuffix("/") + (f"?{query}" if query else "")


def _body(case: Case[Any]) -> bytes:
    return b"" if isinstance(case.body, NotSet) else json.dumps(case.body).encode()
