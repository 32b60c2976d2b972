"""The agents' endpoints: token to host, fencing, documents by ETag, reports item by item."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.test import Client

from agent.protocol.report import (
    Leftover,
    LeftoversReport,
    WorkspaceStatus,
)
from agent.protocol.state import decode_state
from hosts.models import HostDocument
from tests.factories import (
    api_client,
    make_admin,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_user,
    make_volume,
    make_workspace,
)
from tests.workspaces.agent_client import BASE, AgentClient, etag_of
from workspaces.models import EnvVar, Mount, Port

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> AgentClient:
    return AgentClient(make_host())


def test_the_document_holds_everything_of_its_own_host_and_nothing_of_another(
    agent: AgentClient,
) -> None:
    host = agent.host
    workspace = make_workspace(host, name="notebook", command=["sleep", "1"], shared_volumes=True)
    Port.objects.create(workspace=workspace, container_port=80, host_port=8080)
    volume = make_volume(host, name="data")
    Mount.objects.create(workspace=workspace, volume=volume, target="/data")
    EnvVar.objects.create(workspace=workspace, name="A", value="1")
    network = make_network(host)
    workspace.networks.add(network)
    make_workspace(make_host(), name="elsewhere")

    response = agent.get_state()
    assert response.status_code == 200
    state = decode_state(response.content)
    assert state.host_id == str(host.id)
    (wanted,) = state.workspaces
    assert (wanted.id, wanted.revision, wanted.desired_state) == (str(workspace.id), 1, "running")
    assert wanted.shared_volumes
    assert (wanted.spec.name, wanted.spec.command) == ("notebook", ("sleep", "1"))
    assert wanted.spec.env == {"A": "1"}
    assert wanted.spec.ports[0].host_port == 8080
    assert wanted.spec.mounts[0].source == "trailer-data"
    assert wanted.spec.network_ids == (str(network.id),)
    assert [one.id for one in state.networks] == [str(network.id)]
    assert [one.id for one in state.volumes] == [str(volume.id)]
    assert [one.id for one in state.images] == [str(workspace.image_id)]
    assert state.settings.reconcile_interval == 10


def test_compiling_costs_the_same_queries_for_one_workspace_and_for_many(
    agent: AgentClient, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        workspace = make_workspace(agent.host)
        Port.objects.create(workspace=workspace, container_port=80, host_port=9000 + number)
    # With the registries that administrators store, and who brought in what is borrowed.
    with django_assert_max_num_queries(27):
        assert agent.get_state().status_code == 200


def test_secrets_travel_to_the_agent_but_are_not_readable_in_the_stored_document(
    agent: AgentClient,
) -> None:
    registry = make_registry(password="canary-password")
    make_image(agent.host, registry=registry)
    response = agent.get_state()
    assert b"canary-password" in response.content
    assert "canary-password" not in HostDocument.objects.get(host=agent.host).body


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer wrong", "Token abc", "Bearer \udcff"])
def test_without_a_valid_agent_token_every_route_answers_401(token: str) -> None:
    client = Client(raise_request_exception=False)
    header = {"Authorization": token.encode("utf-8", "replace").decode()}
    assert client.get(f"{BASE}/state", headers=header).status_code == 401
    for path in ("session", "report", "heartbeat", f"builds/{uuid.uuid4()}/log?offset=0"):
        response = client.post(
            f"{BASE}/{path}", data=b"{}", content_type="application/json", headers=header
        )
        assert response.status_code == 401, path
        assert response.json()["code"] == "not_signed_in"


def test_a_new_session_fences_off_the_older_agent(agent: AgentClient) -> None:
    etag = etag_of(agent.get_state())
    opened = agent.post("session", {"agent_version": "0.1.0", "protocol": 1})
    assert opened.json()["epoch"] == agent.epoch + 1
    for answer in (agent.get_state(), agent.get_state(etag), agent.report()):
        assert (answer.status_code, answer.json()["code"]) == (409, "superseded")
    agent.epoch += 1
    assert agent.get_state().status_code == 200


def test_a_status_reaches_the_workspace_and_a_repeated_or_older_one_does_not(
    agent: AgentClient,
) -> None:
    workspace = make_workspace(agent.host)

    def status(seq: int, value: str) -> WorkspaceStatus:
        return WorkspaceStatus(
            seq=seq, workspace_id=str(workspace.id), revision=1, status=value, container_id="c1"
        )

    assert agent.report(status(5, "running")).json()["accepted"] == [5]
    assert agent.report(status(4, "starting"), status(5, "error")).json()["accepted"] == [4, 5]
    workspace.refresh_from_db()
    assert (workspace.observed_status, workspace.container_id) == ("running", "c1")


def test_an_item_for_another_hosts_workspace_is_refused_and_the_rest_still_counts(
    agent: AgentClient,
) -> None:
    mine, foreign = make_workspace(agent.host), make_workspace(make_host())
    items = [
        WorkspaceStatus(seq=seq, workspace_id=str(one.id), revision=1, status="running")
        for seq, one in enumerate((foreign, mine), start=1)
    ]
    answer = agent.report(*items).json()
    assert answer["accepted"] == [1, 2]
    foreign.refresh_from_db()
    mine.refresh_from_db()
    assert foreign.observed_status == "deployment_pending"
    assert mine.observed_status == "running"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"epoch": "x", "items": []}',
        b'{"epoch": 1, "items": [{"kind": "nonsense", "seq": 1}]}',
        b'{"epoch": 1, "items": [{"kind": "workspace", "seq": "1"}]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_malformed_report_is_400_with_a_sentence(agent: AgentClient, body: bytes) -> None:
    response = agent.post("report", body)
    assert response.status_code == 400
    assert response.json()["message"].startswith("The message is not a valid Report")


def test_statuses_with_hostile_values_are_refused_not_stored(agent: AgentClient) -> None:
    workspace = make_workspace(agent.host)
    mine = {"kind": "workspace", "workspace_id": str(workspace.id), "revision": 1}
    hostile: list[dict[str, Any]] = [
        mine | {"seq": 1, "workspace_id": "no-uuid", "status": "running"},
        mine | {"seq": 2, "status": "x"},
        mine | {"seq": 3, "revision": 99, "status": "running", "started_at": "yesterday"},
        {"kind": "tombstone", "seq": 4, "tombstone_id": "no-uuid"},
        {"kind": "build", "seq": 5, "image_id": "x", "build_id": "y", "status": "finished"},
        {"kind": "resource", "seq": 6, "resource": "moon", "object_id": "x", "status": "created"},
    ]
    response = agent.post("report", json.dumps({"epoch": 1, "items": hostile}).encode())
    assert response.status_code == 200
    assert response.json()["accepted"] == [1, 2, 3, 4, 5, 6]
    workspace.refresh_from_db()
    assert workspace.observed_revision <= workspace.revision


def test_leftovers_are_kept_in_report_order_and_shown_to_admins_only(agent: AgentClient) -> None:
    found = Leftover(resource="container", name="web", engine_id="abc", reason="foreign")
    agent.report(LeftoversReport(seq=7, leftovers=(found,)), LeftoversReport(seq=6, leftovers=()))
    address = f"/api/v1/hosts/{agent.host.pk}/leftovers/"
    answer = api_client(make_admin()).get(address)
    assert [row["name"] for row in answer.json()["results"]] == ["web"]
    assert api_client(make_user()).get(address).status_code == 403


def test_a_confirmed_state_raises_the_epoch_that_releases_held_removals(
    agent: AgentClient,
) -> None:
    before = decode_state(agent.get_state().content)
    answer = api_client(make_admin()).post(f"/api/v1/hosts/{agent.host.pk}/confirm-state/")
    assert answer.status_code == 202
    after = decode_state(agent.get_state().content)
    assert after.state_epoch > before.state_epoch
    assert after.version > before.version


def test_a_heartbeat_makes_the_host_online_and_returns_its_settings() -> None:
    host = make_host(online=False, epoch=1, heartbeat_interval=7)
    agent = AgentClient(host)
    answer = agent.post(
        "heartbeat",
        {
            "epoch": 1,
            "agent_version": "0.1.0",
            "cpu_count": 2,
            "memory_bytes": 1000,
            "engine": {"id": "x", "version": "20.10.24", "runtimes": ["runc"]},
        },
    )
    assert answer.status_code == 200
    assert answer.json()["settings"]["heartbeat_interval"] == 7
    host.refresh_from_db()
    assert host.last_heartbeat is not None
    assert (host.cpu_count, host.engine["version"]) == (2, "20.10.24")
