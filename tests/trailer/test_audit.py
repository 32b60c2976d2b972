"""The audit: one row per change, in its transaction, that nobody can alter."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, cast

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError, connection, transaction
from django.test import AsyncClient, Client

from tests.factories import api_client, make_admin, make_network, make_user, make_workspace
from trailer.audit.models import AppendOnly, AuditEntry
from trailer.audit.record import MASK, record
from trailer.context import origin, socket_origin
from workspaces.services import workspace_update

if TYPE_CHECKING:
    from hosts.models import Host
    from tests.factories import JsonClient
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/audit/"


@pytest.fixture
def client(admin: User) -> JsonClient:
    return api_client(admin)


def test_a_change_says_who_by_what_from_where_and_what(owner: User, host: Host) -> None:
    workspace = make_workspace(host, owner, "box")
    browser = api_client(owner)
    answer = browser.patch(
        f"/api/v1/workspaces/{workspace.pk}/",
        {"cpus": 2, "secret_env": {"KEY": "s3cr3t"}},
        REMOTE_ADDR="10.1.2.3",
        HTTP_X_REQUEST_ID="request-12345678",
    )
    assert answer.status_code == 200
    [entry] = AuditEntry.objects.filter(action="workspace.update")
    assert (entry.actor_id, entry.actor_name) == (owner.pk, "olga")
    assert (entry.via, entry.token_name, entry.address) == ("token", "test", "10.1.2.3")
    assert entry.request_id == "request-12345678"
    assert (entry.kind, entry.object_id, entry.object_name) == (
        "workspace",
        str(workspace.pk),
        "box",
    )
    changed = {change["field"]: (change["from"], change["to"]) for change in entry.changes}
    assert changed["cpus"] == (None, 2.0)
    assert "s3cr3t" not in str(entry.changes)
    # The next request is its own.
    assert origin().via == "system"


def test_a_browser_is_told_from_a_token_and_from_the_admin_pages(admin: User) -> None:
    pages = Client()
    pages.force_login(admin)
    body = {"name": "north"}
    assert pages.post("/api/v1/hosts/", body, content_type="application/json").status_code == 201
    assert AuditEntry.objects.get(action="host.create").via == "session"
    pages.post("/admin/auth/group/add/", {"name": "lab"})
    assert AuditEntry.objects.get(action="group.create").via == "admin"


def test_what_is_rolled_back_leaves_no_row(owner: User, host: Host) -> None:
    workspace = make_workspace(host, owner)
    with transaction.atomic():
        workspace_update(actor=owner, workspace=workspace, data={"cpus": 1})
        transaction.set_rollback(True)
    assert AuditEntry.objects.count() == 0
    bad = api_client(owner).patch(f"/api/v1/workspaces/{workspace.pk}/", {"cpus": 0})
    assert bad.status_code == 400
    assert AuditEntry.objects.count() == 0


def test_what_changes_nothing_is_no_change(owner: User, host: Host) -> None:
    workspace = make_workspace(host, owner, "box")
    api_client(owner).patch(f"/api/v1/workspaces/{workspace.pk}/", {"name": "box"})
    assert AuditEntry.objects.count() == 0


def test_rows_can_be_neither_changed_nor_deleted() -> None:
    record("user.login", actor_name="eva")
    entry = AuditEntry.objects.get()
    entry.actor_name = "mallory"
    for attempt in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(actor_name="mallory"),
        lambda: AuditEntry.objects.bulk_update([entry], ["actor_name"]),
    ):
        with pytest.raises(AppendOnly):
            attempt()
    for statement in (
        "UPDATE audit_auditentry SET actor_name = 'mallory'",
        "DELETE FROM audit_auditentry",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert AuditEntry.objects.get().actor_name == "eva"


def test_secrets_are_masked_and_long_values_cut() -> None:
    changes: list[dict[str, Any]] = [
        {"field": "password", "from": "old-one", "to": "new-one"},
        {"field": "build_args", "from": {}, "to": {"TOKEN": "s3cr3t"}},
        {"field": "dockerfile", "from": "", "to": "x" * 5000},
        {"field": "ports", "from": None, "to": [{"container_port": 80}] * 300},
    ]
    record("image.update", actor=make_user("eva"), changes=changes)
    shown = {change["field"]: change["to"] for change in AuditEntry.objects.get().changes}
    assert shown["password"] == MASK
    assert shown["build_args"] == {"TOKEN": MASK}
    assert len(shown["dockerfile"]) < 300
    assert len(shown["ports"]) == 20
    assert "s3cr3t" not in str(shown)


def test_sign_ins_are_written_down_whether_they_succeed_or_not() -> None:
    make_user("eva", password="correct horse")
    for address in ("/login/", "/api/v1/auth/token/"):
        for password in ("nope", "correct horse"):
            given = {"username": "eva", "password": password}
            client = Client() if "login" in address else api_client()
            client.post(address, given)
    told = [(row.actor_name, row.outcome, row.via) for row in AuditEntry.objects.order_by("at")]
    assert told == [
        ("eva", "refused", "session"),
        ("eva", "done", "session"),
        ("eva", "refused", "token"),
        ("eva", "done", "token"),
    ]
    assert "nope" not in str(list(AuditEntry.objects.values()))


def test_the_origin_reaches_services_under_asgi(transactional_db: None) -> None:
    admin = make_admin("root")
    browser = AsyncClient()
    async_to_sync(sync_to_async(browser.force_login))(admin)
    answer = async_to_sync(browser.post)(
        "/api/v1/hosts/", '{"name": "south"}', content_type="application/json"
    )
    assert answer.status_code == 201
    entry = AuditEntry.objects.get(action="host.create")
    assert (entry.via, entry.request_id) == ("session", answer.headers["X-Request-Id"])


def test_a_socket_says_where_it_comes_from() -> None:
    scope = {"client": ("10.0.0.9", 1234), "headers": [(b"user-agent", b"curl/8")]}
    where = socket_origin(scope, token_name="ci")
    assert (where.via, where.address, where.token_name) == ("token", "10.0.0.9", "ci")
    record("workspace.exec", actor=make_user("eva"), where=where)
    assert AuditEntry.objects.get().address == "10.0.0.9"


def test_the_list_is_filtered_searched_and_paged(client: JsonClient, host: Host) -> None:
    eva, adam = make_user("eva"), make_user("adam")
    network = make_network(host, eva, "office")
    record("network.create", network, actor=eva)
    record("workspace.delete", make_workspace(host, adam, "box"), actor=adam)
    record("user.login", actor_name="adam", outcome="refused")
    middle = AuditEntry.objects.get(action="workspace.delete").at.isoformat()
    for query, actions in (
        ({"actor": "eva"}, ["network.create"]),
        ({"actor": str(adam.pk)}, ["workspace.delete"]),
        ({"actor": "adam"}, ["user.login", "workspace.delete"]),
        ({"action": "workspace"}, ["workspace.delete"]),
        ({"action": "network.create"}, ["network.create"]),
        ({"kind": "network"}, ["network.create"]),
        ({"object": str(network.pk)}, ["network.create"]),
        ({"outcome": "refused"}, ["user.login"]),
        ({"since": middle}, ["user.login", "workspace.delete"]),
        ({"until": middle}, ["network.create"]),
        ({"search": "OFFICE"}, ["network.create"]),
        ({"page_size": 1, "page": 3}, ["network.create"]),
    ):
        answer = client.get(URL, query)
        assert answer.status_code == 200, answer.content
        assert [row["action"] for row in answer.json()["results"]] == actions, query
    for query in ({"since": "soon"}, {"outcome": "x"}, {"via": "x"}, {"ordering": "secret"}):
        assert client.get(URL, query).status_code in (200, 400)
    assert client.get(URL, {"since": "soon"}).status_code == 400


def test_it_is_for_admins_and_takes_no_changes(client: JsonClient, owner: User) -> None:
    record("user.login", actor=owner)
    entry = AuditEntry.objects.get()
    assert api_client(owner).get(URL).status_code == 403
    assert api_client(owner).get(f"{URL}export/").status_code == 403
    for method in (client.post, client.put, client.patch, client.delete):
        assert method(URL, {}).status_code == 405
        assert method(f"{URL}{entry.pk}/", {}).status_code == 405
    assert client.get(f"{URL}{entry.pk}/").json()["actor"] == "olga"


def test_the_export_holds_what_the_filters_find_and_no_formula(
    client: JsonClient, django_assert_max_num_queries: Any
) -> None:
    for number in range(1200):
        AuditEntry.objects.create(via="system", action="user.login", actor_name=f"=cmd{number}")
    AuditEntry.objects.create(via="system", action="host.delete", actor_name="eva")
    with django_assert_max_num_queries(6):
        answer = client.get(f"{URL}export/", {"action": "user"})
        text = b"".join(cast("Any", answer).streaming_content).decode()
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 1200
    assert {row["action"] for row in rows} == {"user.login"}
    assert all(row["actor_name"].startswith("'=cmd") for row in rows)
