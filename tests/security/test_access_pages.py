"""Every page, admin view, agent route and other address × every kind of caller.

The REST API has its own table in test_access.py, the sockets theirs in test_access_sockets.py. An
address that is in none of them fails the build.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, ClassVar

from django.contrib import admin as django_admin
from django.test import Client, TestCase

from tests.architecture.scene import AccessScene, undone
from tests.architecture.test_access import _registered
from tests.factories import make_grant, make_user
from trailer.access.models import Role

# Answers everybody; each with tests of its own.
PUBLIC = {
    *("healthz", "readyz", "login/", "login/code/", "login/sso/", "login/sso/callback/"),
    *("login/reset/", "login/reset/sent/", "login/reset/done/", "login/reset/{part}/{part}/"),
    *("webhooks/stacks/{id}/", "urls/enter/", "logout/", "favicon.ico"),
    "forward-auth/{forward-auth}/{forward-auth}/",
}
# For whoever is signed in; what it shows is filtered by what the caller may see.
SIGNED_IN = {
    *("", "workspaces/", "workspaces/new/", "stacks/", "stacks/new/", "images/", "images/new/"),
    *("hosts/", "hosts/{host}/", "search/", "networks/", "volumes/", "registries/", "profile/"),
}
# Of one object: its owner, who was granted at least viewer, and administrators.
OF_ONE_OBJECT = {
    *("workspaces/{workspace}/", "stacks/{stack}/", "images/{image}/", "networks/{network}/"),
    "volumes/{volume}/",
}
ADMINS = {"users/", "audit/", "metrics"}
DOCUMENTS = {"api/schema/", "api/docs/"}
AGENT = {
    *("enrol", "session", "state", "check", "report", "heartbeat", "token"),
    *("images", "images/{id}", "builds/{id}/log"),
}


def _plain(path: str) -> str:
    """The table's spelling of a route: objects by their kind where the address says it."""
    kind = path.split("/", maxsplit=1)[0].removesuffix("s")
    path = path.replace("{id}", f"{{{kind}}}") if kind != "webhook" else path
    return re.sub(r"<\w+>", "{part}", path)


class TestEveryAddress(TestCase):
    scene: ClassVar[AccessScene]
    browsers: ClassVar[dict[str, Client]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        scene = cls.scene = AccessScene()
        staff = make_user("staff", is_staff=True)
        people = {"stranger": scene.stranger, "owner": scene.owner, "admin": scene.admin}
        cls.browsers = {who: scene.browser(user) for who, user in people.items()}
        cls.browsers |= {"anonymous": Client(), "staff": scene.browser(staff)}
        for role in Role:
            holder = make_user(f"holder-{role.label}")
            for kind in ("workspace", "stack", "image", "network", "volume"):
                make_grant(scene.rows[kind], holder, role)
            cls.browsers[role.label] = scene.browser(holder)

    def codes(self, path: str, *callers: str) -> dict[str, int]:
        address = "/" + path.format(**self.scene.ids)
        with undone():
            return {who: self.browsers[who].get(address).status_code for who in callers}

    def test_every_address_is_in_a_table(self) -> None:
        found = {
            _plain(path)
            for path in _registered()
            if not path.startswith(("api/v1/", "admin/", "api/agent/"))
        }
        assert found == PUBLIC | SIGNED_IN | OF_ONE_OBJECT | ADMINS | DOCUMENTS
        agent = {
            path.removeprefix("api/agent/v1/") for path in _registered() if "agent/v1" in path
        }
        assert agent == AGENT

    def test_a_page_needs_somebody_who_is_signed_in(self) -> None:
        everybody = [who for who in self.browsers if who != "anonymous"]
        for path in sorted(SIGNED_IN):
            assert self.codes(path, "anonymous") == {"anonymous": 302}, path
            assert set(self.codes(path, *everybody).values()) == {200}, path

    def test_the_page_of_an_object_is_for_who_may_see_it(self) -> None:
        for path in sorted(OF_ONE_OBJECT):
            allowed = ["owner", "admin", *(role.label for role in Role)]
            assert self.codes(path, "anonymous") == {"anonymous": 302}, path
            assert set(self.codes(path, "stranger", "staff").values()) == {404}, path
            assert set(self.codes(path, *allowed).values()) == {200}, path

    def test_what_is_for_admins_is_for_nobody_else(self) -> None:
        others = [who for who in self.browsers if who not in ("admin", "anonymous", "staff")]
        for path in sorted(ADMINS):
            assert self.codes(path, "admin") == {"admin": 200}, path
            assert set(self.codes(path, *others).values()) <= {403, 404}, path
            assert set(self.codes(path, "anonymous").values()) <= {302, 401, 403}, path

    def test_the_documents_of_the_api_need_a_sign_in(self) -> None:
        for path in sorted(DOCUMENTS):
            assert set(self.codes(path, "anonymous").values()) <= {302, 401, 403}, path
            assert self.codes(path, "stranger") == {"stranger": 200}, path

    def test_every_admin_view_is_for_administrators(self) -> None:
        """Staff without the right, owners and everybody else are led away or refused."""
        wrong, seen = [], 0
        for path in sorted(path for path in _registered() if path.startswith("admin/")):
            if path in ("admin/login/", "admin/logout/", "admin/jsi18n/", "admin/(?P<url>.*)"):
                continue
            address = self._admin_address(path)
            for who in ("anonymous", "stranger", "owner", "manager", "staff"):
                with undone():
                    answer = self.browsers[who].get(address)
                seen += 1
                lobby = who == "staff" and _shows_no_object(path)
                if not _is_refused(answer) and not lobby:
                    wrong.append((who, address, answer.status_code))
        assert wrong == []
        assert seen > 400

    def test_an_administrator_gets_every_list_of_the_admin(self) -> None:
        for model in django_admin.site._registry:
            address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            assert self.browsers["admin"].get(address).status_code == 200, address

    def _admin_address(self, path: str) -> str:
        words = path.split("/")
        kind = words[2] if len(words) > 2 else ""
        row = self.scene.rows.get(kind)
        number = str(row.pk) if row is not None else str(uuid.uuid4())
        filled = re.sub(r"<path:object_id>|<\w+:\w+>|<\w+>|\{id\}", number, path)
        return "/" + filled

    def test_agent_routes_take_only_the_token_of_a_host(self) -> None:
        build = self.scene.ids["build"]
        for path in sorted(AGENT - {"enrol"}):
            address = f"/api/agent/v1/{path.replace('{id}', build)}"
            method = "GET" if path in ("state", "check", "images", "images/{id}") else "POST"
            for who, client in self.scene.clients.items():
                answer = _agent_call(client, method, address)
                if who == "its host by Bearer":
                    assert answer.status_code != 401, path
                elif who != "another host by Bearer":
                    assert answer.status_code == 401, (path, who)

    def test_the_token_of_another_host_reads_and_writes_nothing_of_this_one(self) -> None:
        address = f"/api/agent/v1/builds/{self.scene.ids['build']}/log"
        other = self.scene.clients["another host by Bearer"]
        assert _agent_call(other, "POST", address).status_code in (400, 403, 404, 409)
        state = _agent_call(other, "GET", "/api/agent/v1/state", HTTP_TRAILER_EPOCH="1")
        assert self.scene.ids["workspace"] not in state.content.decode()


def _agent_call(client: Any, method: str, address: str, **headers: str) -> Any:
    return client.generic(method, address, b"{}", content_type="application/json", **headers)


def _is_refused(answer: Any) -> bool:
    if answer.status_code == 302:
        place = answer.headers["Location"]
        # An object's bare address leads to its form, which is asked for itself.
        return "/admin/login/" in place or place == "/admin/" or place.endswith("/change/")
    return answer.status_code in (403, 404, 405)


def _shows_no_object(path: str) -> bool:
    """The lobby of the admin: empty for who has no right to any model."""
    return path in ("admin/", "admin/search/", "admin/password_change/") or path.startswith(
        ("admin/password_change", "admin/autocomplete", "admin/r/", "admin/(?P<app_label>")
    )
