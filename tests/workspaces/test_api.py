"""The REST endpoints of workspaces: shapes and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hosts.models import Host
from tests.factories import make_image, make_silent_host
from tests.workspaces.scene import CANARY, URL, observe
from workspaces.models import Event, Workspace
from workspaces.validation.fields import WRITABLE

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene

READ_ONLY = {
    *("id", "status", "status_label", "message", "fresh", "observed_at", "allowed_actions"),
    *("revision", "observed_revision", "container_id", "container_name", "started_at"),
    *("restart_count", "health", "owner", "stack", "created_at", "updated_at", "exit_code"),
    *("host_name", "image_name", "network_names", "volume_names", "gpu_ids", "timer"),
    *("hidden_fields", "notice"),
}


def detail(workspace: Any, action: str = "") -> str:
    return f"{URL}{workspace.pk}/{action}"


def test_creating_answers_201_with_every_field(scene: Scene) -> None:
    answer = scene.client().post(URL, scene.full_body(), format="json")
    assert answer.status_code == 201, answer.data
    body = answer.json()
    assert set(body) == WRITABLE | READ_ONLY
    workspace = Workspace.objects.get()
    assert body["id"] == str(workspace.pk)
    assert body["secret_env"] == {"PASSWORD": None}
    assert body["ports"] == [
        {"container_port": 80, "protocol": "tcp", "host_port": 8080, "host_ip": ""}
    ]
    assert body["mounts"] == [
        {"volume": str(scene.volume.pk), "target": "/data", "read_only": False}
    ]
    assert body["networks"] == [str(scene.network.pk)]
    assert body["urls"] == [
        {"subdomain": "box", "domain": "example.com", "port": 80, "tls": False, "auth": "users"}
    ]
    assert body["health_check"] == {
        "test": ["CMD", "true"],
        "interval": 5.0,
        "timeout": 30.0,
        "retries": 3,
        "start_period": 0.0,
    }
    assert (body["cpus"], body["gpus"], body["stack"]) == (1.5, None, None)
    assert body["schedule"] == {"start": "0 8 * * 1-5", "stop": "0 18 * * 1-5"}
    assert (body["status"], body["status_label"]) == ("deployment_pending", "Deployment pending")
    assert (body["container_name"], body["owner"]) == ("trailer-box", "owner")
    assert (body["host"], body["image"]) == (str(scene.host.pk), str(scene.image.pk))
    assert (body["fresh"], body["revision"], body["observed_revision"]) == (True, 1, 0)
    assert "stop" in body["allowed_actions"]
    assert body["created_at"].endswith("Z")


def test_what_is_read_may_be_sent_back_and_changes_nothing(scene: Scene) -> None:
    workspace = scene.create_full()
    client = scene.client()
    body = client.get(detail(workspace)).json()
    sent = {name: body[name] for name in WRITABLE}
    answer = client.patch(detail(workspace), sent, format="json")
    assert answer.status_code == 200, answer.json()
    assert answer.json()["revision"] == 1
    assert Workspace.objects.get().env_vars.get(is_secret=True).secret_token


def test_a_change_answers_the_object_and_put_is_not_offered(scene: Scene) -> None:
    workspace = scene.create()
    client = scene.client()
    answer = client.patch(detail(workspace), {"cpus": 2}, format="json")
    assert (answer.status_code, answer.json()["cpus"], answer.json()["revision"]) == (200, 2.0, 2)
    assert client.put(detail(workspace), scene.body(), format="json").status_code == 405


def test_an_outdated_if_match_is_a_conflict(scene: Scene) -> None:
    workspace = scene.create()
    client = scene.client()
    answer = client.patch(detail(workspace), {"cpus": 2}, format="json", HTTP_IF_MATCH="7")
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_moved")
    for cpus, value in enumerate(("1", '"2"', "*"), start=1):
        answer = client.patch(
            detail(workspace), {"cpus": cpus}, format="json", HTTP_IF_MATCH=value
        )
        assert (answer.status_code, answer.json()["revision"]) == (200, cpus + 1)
    for method, path in (("delete", ""), ("post", "stop/"), ("post", "clone/")):
        call = getattr(client, method)
        answer = call(
            detail(workspace, path),
            {"name": "x"} if path == "clone/" else {},
            HTTP_IF_MATCH="7",
            format="json",
        )
        assert answer.status_code == 409, path
    answer = client.patch(detail(workspace), {"cpus": 3}, format="json", HTTP_IF_MATCH="abc")
    assert answer.status_code == 400


def test_actions_answer_202_with_the_object(scene: Scene) -> None:
    workspace = scene.create()
    client = scene.client()
    for action, status in (
        ("stop", "stopping"),
        ("start", "deployment_pending"),
        ("start", "deployment_pending"),
        ("redeploy", "deployment_pending"),
    ):
        answer = client.post(detail(workspace, f"{action}/"))
        assert (answer.status_code, answer.json()["status"]) == (202, status)
        assert answer.json()["id"] == str(workspace.pk)
    answer = client.post(detail(workspace, "start/"), {"force": True}, format="json")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["force"])


def test_a_clone_is_answered_as_a_new_object(scene: Scene) -> None:
    workspace = scene.create_full()
    answer = scene.client().post(detail(workspace, "clone/"), {"name": "copy"}, format="json")
    assert (answer.status_code, answer.json()["name"]) == (202, "copy")
    assert answer.json()["id"] != str(workspace.pk)
    assert answer.json()["secret_env"] == {"PASSWORD": None}


def test_a_rollback_is_answered_with_the_restored_object(scene: Scene) -> None:
    workspace = scene.create(cpus=1)
    client = scene.client()
    client.patch(detail(workspace), {"cpus": 2}, format="json")
    answer = client.post(detail(workspace, "rollback/"), {"revision": 1}, format="json")
    assert (answer.status_code, answer.json()["cpus"], answer.json()["revision"]) == (202, 1.0, 3)


def test_a_plan_has_the_shape_of_the_contract(scene: Scene) -> None:
    workspace = scene.create_full()
    observe(workspace)
    Host.objects.update(last_heartbeat=None)
    body = {"env": {"MODE": "live"}, "secret_env": {"PASSWORD": "other"}, "description": ""}
    answer = scene.client().post(detail(workspace, "plan/"), body, format="json")
    assert answer.status_code == 200
    told = answer.json()
    assert told.pop("writable_layer_reason").endswith("is pending.")
    assert (told.pop("can_snapshot"), told.pop("notes")) == (False, [])
    assert told == {
        "action": "replace",
        "changes": [
            {
                "field": "env",
                "from": {"MODE": "test"},
                "to": {"MODE": "live"},
                "effect": "replace",
            },
            {
                "field": "secret_env",
                "from": {"PASSWORD": "•••"},
                "to": {"PASSWORD": "•••"},
                "effect": "replace",
            },
            {"field": "description", "from": "For the tests.", "to": "", "effect": "none"},
        ],
        "downtime": "brief",
        "downtime_reason": "It publishes port 8080 of the host.",
        "loses_files": True,
        "writable_layer": None,
    }
    assert Workspace.objects.get().revision == 1


def test_deleting_answers_204_and_then_404(scene: Scene) -> None:
    workspace = scene.create()
    client = scene.client()
    assert client.delete(detail(workspace)).status_code == 204
    assert client.get(detail(workspace)).status_code == 404
    assert client.delete(detail(workspace)).status_code == 404


def test_events_come_newest_first_with_actor_and_changes(scene: Scene) -> None:
    workspace = scene.create()
    client = scene.client()
    client.patch(detail(workspace), {"cpus": 2}, format="json")
    answer = client.get(detail(workspace, "events/")).json()
    assert answer["count"] == 2
    newest = answer["results"][0]
    assert set(newest) >= {"at", "kind", "cause", "changes", "actor", "cycle"}
    assert (newest["kind"], newest["actor"], newest["cycle"]) == ("changed", "owner", None)
    assert newest["changes"] == [
        {"field": "cpus", "label": "CPUs", "from": None, "to": 2.0, "effect": "replace"}
    ]
    assert (newest["outcome"], newest["by"]) == ("asked", {"type": "user", "name": "owner"})
    assert newest["summary"] == "owner changed CPUs from no limit to 2; not done yet."
    assert answer["results"][1]["kind"] == "created"


def test_revisions_come_newest_first_without_secrets(scene: Scene) -> None:
    workspace = scene.create_full()
    client = scene.client()
    client.patch(detail(workspace), {"cpus": 2}, format="json")
    answer = client.get(detail(workspace, "revisions/"), {"page_size": 1}).json()
    assert (answer["count"], len(answer["results"])) == (2, 1)
    newest = answer["results"][0]
    assert (newest["revision"], newest["actor"]) == (2, "owner")
    assert set(newest["fields"]) == WRITABLE - {"secret_env"}
    assert newest["fields"]["cpus"] == 2.0


def test_a_silent_hosts_workspace_keeps_its_status_and_is_not_fresh(scene: Scene) -> None:
    host = make_silent_host()
    image = make_image(host, scene.owner)
    workspace = scene.create(host=str(host.pk), image=str(image.pk))
    observe(workspace)
    body = scene.client().get(detail(workspace)).json()
    assert (body["status"], body["fresh"]) == ("running", False)


def test_no_secret_is_in_any_answer(scene: Scene) -> None:
    client = scene.client()
    texts = [client.post(URL, scene.full_body(), format="json").content]
    workspace = Workspace.objects.get()
    observe(workspace)
    changed = {"secret_env": {"PASSWORD": f"{CANARY}-2", "NEW": f"{CANARY}-3"}}
    moved: dict[str, Any] = {"secret_env": {}, "env": {}}
    for method, path, body in (
        ("post", "plan/", changed),
        ("patch", "", changed),
        ("post", "plan/", moved),
        ("patch", "", moved),
        ("post", "rollback/", {"revision": 1}),
        ("post", "clone/", {"name": "copy"}),
        ("post", "redeploy/", {}),
        ("patch", "", {"secret_env": {"PASSWORD": [CANARY]}}),
        ("patch", "", {"secret_env": {CANARY * 30: "x"}, "env": {"A": 1}}),
    ):
        call = getattr(client, method)
        texts.append(call(detail(workspace, path), body, format="json").content)
    reads = [detail(workspace, path) for path in ("", "events/", "revisions/")]
    texts += [client.get(path).content for path in (*reads, URL)]
    assert all(CANARY.encode() not in text for text in texts)
    assert CANARY not in str(list(Event.objects.values_list("changes", "cause")))


def test_the_hosts_limits_are_judged_with_the_host_as_it_is_now(scene: Scene) -> None:
    client = scene.client()
    Host.objects.filter(pk=scene.host.pk).update(cpu_count=2)
    answer = client.post(URL, scene.body(cpus=3), format="json")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["cpus"])
