"""Every route × every kind of caller; a route that is missing from the table fails the build."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django.test import TestCase
from django.urls import URLPattern, URLResolver, get_resolver

from tests.architecture.scene import SHARED, AccessScene, undone
from trailer.access.models import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    # True, or what is wrong.
    Judge = Callable[[str, str, "Route"], bool | list[Any]]

# Nobody is granted this: only the owner and admins get in.
OWNER: Any = Role.MANAGER + 1
# How a stranger (signed in, not the owner, no admin) is answered.
HIDDEN, OPEN, FORBIDDEN = "hidden", "open", "forbidden"


@dataclass(frozen=True)
class Route:
    """`kind` names the object whose id goes into the address; `methods` are those it offers."""

    kind: str
    methods: str
    stranger: str
    # The least role whose holders get in; without it the method decides.
    least: Role | None = None

    def needs(self, method: str) -> Role:
        if self.least is not None:
            return self.least
        return {"GET": Role.VIEWER, "DELETE": Role.MANAGER}.get(method, Role.EDITOR)


TABLE = {
    "tokens/": Route("", "GET POST", OPEN),
    "tokens/{id}/": Route("token", "GET DELETE", HIDDEN),
    "sessions/": Route("", "GET", OPEN),
    "sessions/{id}/": Route("session", "GET DELETE", HIDDEN),
    "sessions/end-others/": Route("", "POST", OPEN),
    "me/": Route("", "GET PATCH", OPEN),
    "me/password/": Route("", "POST", OPEN),
    "me/quota/": Route("", "GET", OPEN),
    "me/second-factor/": Route("", "GET POST", OPEN),
    "me/second-factor/confirm/": Route("", "POST", OPEN),
    "me/second-factor/remove/": Route("", "POST", OPEN),
    "me/second-factor/recovery-codes/": Route("", "POST", OPEN),
    "users/{id}/second-factor/remove/": Route("user", "POST", FORBIDDEN),
    "users/{id}/quota/": Route("user", "GET PUT", FORBIDDEN),
    "groups/{id}/quota/": Route("group", "GET PUT", FORBIDDEN),
    "groups/": Route("", "GET POST", FORBIDDEN),
    "groups/{id}/": Route("group", "GET PATCH DELETE", FORBIDDEN),
    "audit/": Route("", "GET", FORBIDDEN),
    "audit/{id}/": Route("audit", "GET", FORBIDDEN),
    "audit/export/": Route("", "GET", FORBIDDEN),
    "users/": Route("", "GET POST", FORBIDDEN),
    "users/{id}/": Route("user", "GET PATCH DELETE", FORBIDDEN),
    "hosts/": Route("", "GET", OPEN),
    "hosts/{id}/": Route("host", "GET", OPEN),
    "hosts/{id}/access/": Route("host", "GET PUT", FORBIDDEN),
    "hosts/{id}/cycles/": Route("host", "GET", FORBIDDEN),
    "hosts/{id}/enrolment/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/revoke/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/metrics/": Route("host", "GET", OPEN),
    "agent-rollouts/": Route("", "GET POST", FORBIDDEN),
    "agent-rollouts/stop/": Route("", "POST", FORBIDDEN),
    "hosts/{id}/leftovers/": Route("host", "GET", FORBIDDEN),
    "hosts/{id}/confirm-state/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/unused-images/": Route("host", "GET", OPEN),
    "networks/": Route("", "GET", OPEN),
    "networks/{id}/": Route("network", "GET PATCH DELETE", HIDDEN),
    "networks/{id}/grants/": Route("network", "GET PUT", HIDDEN, Role.MANAGER),
    "networks/{id}/evict/": Route("network", "POST", HIDDEN, Role.MANAGER),
    "networks/{id}/transfer/": Route("network", "POST", HIDDEN, OWNER),
    "volumes/": Route("", "GET", OPEN),
    "volumes/{id}/": Route("volume", "GET DELETE", HIDDEN),
    "volumes/{id}/grants/": Route("volume", "GET PUT", HIDDEN, Role.MANAGER),
    "volumes/{id}/acknowledge/": Route("volume", "POST", HIDDEN),
    "volumes/{id}/evict/": Route("volume", "POST", HIDDEN, Role.MANAGER),
    "volumes/{id}/transfer/": Route("volume", "POST", HIDDEN, OWNER),
    "registries/": Route("", "GET", OPEN),
    "registries/{id}/": Route("registry", "GET PATCH DELETE", HIDDEN),
    "registries/{id}/test/": Route("registry", "POST", HIDDEN),
    "images/": Route("", "GET", OPEN),
    "images/{id}/": Route("image", "GET PATCH DELETE", HIDDEN),
    "images/{id}/build/": Route("image", "POST", HIDDEN),
    "images/{id}/build/plan/": Route("image", "POST", HIDDEN),
    "images/{id}/builds/": Route("image", "GET", HIDDEN),
    "images/{id}/cancel/": Route("image", "POST", HIDDEN),
    "images/{id}/check/": Route("image", "POST", HIDDEN),
    "images/{id}/grants/": Route("image", "GET PUT", HIDDEN, Role.MANAGER),
    "images/{id}/evict/": Route("image", "POST", HIDDEN, Role.MANAGER),
    "images/{id}/transfer/": Route("image", "POST", HIDDEN, OWNER),
    "builds/{id}/": Route("build", "GET", HIDDEN),
    "builds/{id}/log/": Route("build", "GET", HIDDEN),
    "stacks/": Route("", "GET", OPEN),
    "stacks/{id}/": Route("stack", "GET PATCH DELETE", HIDDEN),
    "stacks/check/": Route("", "POST", OPEN),
    "stacks/{id}/diff/": Route("stack", "GET", HIDDEN),
    "stacks/{id}/encrypt/": Route("stack", "POST", HIDDEN, Role.VIEWER),
    "stacks/{id}/deploy/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/deploy/plan/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/sync/plan/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/rollback/plan/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/settings/plan/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/grants/": Route("stack", "GET PUT", HIDDEN, Role.MANAGER),
    "stacks/{id}/revisions/": Route("stack", "GET", HIDDEN),
    "stacks/{id}/rollback/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/sync/": Route("stack", "POST", HIDDEN),
    "stacks/{id}/syncs/": Route("stack", "GET", HIDDEN),
    "stacks/{id}/transfer/": Route("stack", "POST", HIDDEN, OWNER),
    "syncs/{id}/": Route("sync", "GET", HIDDEN),
    "workspaces/": Route("", "GET", OPEN),
    "workspaces/{id}/": Route("workspace", "GET PATCH DELETE", HIDDEN),
    "workspaces/{id}/clone/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/events/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/metrics/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/grants/": Route("workspace", "GET PUT", HIDDEN, Role.MANAGER),
    "workspaces/{id}/logs/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/plan/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/rollback/plan/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/redeploy/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/redeploy/plan/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/extend/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/revisions/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/rollback/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/snapshot/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/snapshots/": Route("workspace", "GET", HIDDEN, OWNER),
    "workspaces/{id}/start/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/stop/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/transfer/": Route("workspace", "POST", HIDDEN, OWNER),
}
# These need no login by design; their own tests cover them.
PUBLIC = {"auth/token/", "webhooks/stacks/{id}/"}
CASES = [(path, method) for path, route in TABLE.items() for method in route.methods.split()]
SHARED_CASES = [case for case in CASES if TABLE[case[0]].kind in SHARED]
# Of the parts of a workspace, by its viewers.
PARTS_READ = {("GET", f"{kind}s/{{id}}/") for kind in ("image", "network", "volume")}
# Among those who were given a role in the scene.
VIEWER = 2
ADMINISTRATION = [
    *("GET users/", "POST users/", "GET users/{id}/", "PATCH users/{id}/", "DELETE users/{id}/"),
    *("GET groups/", "POST groups/", "PATCH groups/{id}/", "DELETE groups/{id}/"),
    *("GET users/{id}/quota/", "PUT users/{id}/quota/", "PUT groups/{id}/quota/"),
    "POST users/{id}/second-factor/remove/",
    *("GET audit/", "GET audit/{id}/", "GET audit/export/"),
    *("POST hosts/", "PATCH hosts/{id}/", "DELETE hosts/{id}/", "PUT hosts/{id}/access/"),
    *("POST hosts/{id}/enrolment/", "POST hosts/{id}/confirm-state/"),
    "POST hosts/{id}/revoke/",
]
NONSENSE = ("x", "0", "%00", "..%2f..", "null")
NOT_IN = (401, 403, 404, 405)


def _registered(resolver: Any = None, prefix: str = "") -> Iterator[str]:
    for entry in (resolver or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _registered(entry, path)
        elif isinstance(entry, URLPattern):
            path = re.sub(r"\(\?P<\w+>[^)]*\)|<\w+:\w+>", "{id}", path)
            yield path.replace("^", "").replace("$", "")


def _call(client: Any, method: str, path: str, object_id: str) -> Any:
    address = f"/api/v1/{path.replace('{id}', object_id)}"
    return client.generic(method, address, b"{}", content_type="application/json")


def _gets_in(answer: Any) -> bool:
    works = answer.status_code < 500 or answer.status_code == 503
    return works and answer.status_code not in NOT_IN


class TestEveryRoute(TestCase):
    """One scene for all; each cell of the table is put back before the next one."""

    scene: ClassVar[AccessScene]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.scene = AccessScene()

    def judge(
        self,
        cases: Iterable[tuple[str, str]],
        right: Callable[[str, str, Route], bool | list[Any]],
    ) -> None:
        """Fails with every cell that is not as the table says."""
        wrong = []
        for path, method in cases:
            with undone():
                answer = right(path, method, TABLE[path])
            if answer is not True:
                wrong.append((method, path, answer))
        assert wrong == []

    def ask(self, who: str, method: str, path: str) -> Any:
        return _call(
            self.scene.clients[who], method, path, self.scene.ids.get(TABLE[path].kind, "")
        )

    def test_every_route_of_the_api_is_in_the_table(self) -> None:
        prefix = "api/v1/"
        found = {path.removeprefix(prefix) for path in _registered() if path.startswith(prefix)}
        assert found == set(TABLE) | PUBLIC

    def test_nobody_gets_in_without_signing_in(self) -> None:
        def right(path: str, method: str, route: Route) -> bool:
            answer = self.ask("anonymous", method, path)
            told = answer.status_code, answer.json()["code"]
            return bool(told == (401, "not_signed_in"))

        self.judge(CASES, right)

    def test_a_host_token_is_no_user_token(self) -> None:
        """Neither that of the object's own host nor that of another one."""

        def right(path: str, method: str, route: Route) -> bool:
            answers = [self.ask(who, method, path) for who in self.scene.host_clients]
            return {answer.status_code for answer in answers} == {401}

        self.judge(CASES, right)

    def test_a_stranger_is_answered_as_the_table_says(self) -> None:
        def right(path: str, method: str, route: Route) -> bool:
            answer = self.ask("stranger", method, path)
            if route.stranger == FORBIDDEN:
                return answer.status_code in (403, 404)
            if route.stranger == OPEN:
                return answer.status_code in (200, 400)
            missing = _call(self.scene.clients["stranger"], method, path, str(uuid.uuid4()))
            alike = answer.json()["message"] == missing.json()["message"]
            return alike and (answer.status_code, missing.status_code) == (404, 404)

        self.judge(CASES, right)

    def test_the_owner_gets_in(self) -> None:
        own = [case for case in CASES if TABLE[case[0]].stranger != FORBIDDEN]
        self.judge(own, lambda path, method, _: _gets_in(self.ask("owner", method, path)))

    def test_an_admin_gets_in(self) -> None:
        """Except to what is one person's alone."""
        cases = [
            (path, method)
            for path, method in CASES
            if TABLE[path].stranger == FORBIDDEN
            or TABLE[path].kind not in ("token", "session", "user", "")
        ]
        self.judge(cases, lambda path, method, _: _gets_in(self.ask("admin", method, path)))

    def test_a_role_opens_what_the_table_says_and_nothing_more(self) -> None:
        def right(path: str, method: str, route: Route) -> list[Any] | bool:
            wrong: list[Any] = []
            for client, role in self.scene.holders[route.kind]:
                with undone():
                    answer = _call(client, method, path, self.scene.ids[route.kind])
                opened = _gets_in(answer) if role >= route.needs(method) else None
                refused = answer.status_code == (404 if role == 0 else 403)
                if not (refused if opened is None else opened):
                    wrong.append((role, answer.status_code))
            return wrong or True

        self.judge(SHARED_CASES, right)

    def test_a_viewer_of_a_workspace_reads_its_parts_and_nothing_more(self) -> None:
        rows, viewer = self.scene.rows, self.scene.holders["workspace"][VIEWER][0]
        rows["workspace"].networks.add(rows["network"])
        rows["workspace"].mounts.create(volume=rows["volume"], target="/data")

        def right(path: str, method: str, route: Route) -> bool | list[Any]:
            answer = _call(viewer, method, path, self.scene.ids[route.kind])
            if (method, path) in PARTS_READ:
                return _gets_in(answer)
            hidden = 404 if route.kind == "build" else 403
            return answer.status_code == hidden or [answer.status_code]

        parts = ("image", "build", "network", "volume")
        self.judge([case for case in SHARED_CASES if TABLE[case[0]].kind in parts], right)

    def test_a_token_that_may_only_read_changes_nothing(self) -> None:
        def right(path: str, method: str, route: Route) -> bool:
            if method == "GET":
                method = "POST" if "POST" in route.methods else "PATCH"
            return self.ask("reader", method, path).status_code in (403, 405)

        self.judge(CASES, right)

    def test_administration_takes_a_token_made_for_it(self) -> None:
        for line in ADMINISTRATION:
            method, _, path = line.partition(" ")
            with self.subTest(line):
                answer = self.ask("admin that may only write", method, path)
                assert answer.status_code == 403
                assert "scope admin" in answer.json()["message"]

    def test_an_id_that_is_none_is_404(self) -> None:
        def right(path: str, method: str, route: Route) -> bool:
            answers = [
                (who, _call(self.scene.clients[who], method, path, nonsense).status_code)
                for nonsense in NONSENSE
                for who in ("owner", "admin")
            ]
            return all(code in ((404,) if who == "admin" else (403, 404)) for who, code in answers)

        firsts = [(p, route.methods.split()[0]) for p, route in TABLE.items() if route.kind]
        self.judge(firsts, right)
