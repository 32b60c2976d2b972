"""Looking at a repository without deploying, over REST and on the page; a real git server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.actors import admin, host, owner, stranger
from tests.factories import api_client, make_grant, make_stack, make_user, make_workspace
from trailer.access.models import Role
from trailer.sealed import seal_mapping, unseal
from workspaces.models import Workspace
from workspaces.stacks.file.identity import decrypt_value
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.git.source import GitSource
from workspaces.stacks.git.types import GitError
from workspaces.stacks.models import Stack, StackRevision

if TYPE_CHECKING:
    from hosts.models import Host
    from tests.ground.gitserver import GitRepository, GitServer
    from trailer.accounts.models import User

__all__ = ["admin", "host", "owner", "stranger"]

pytestmark = pytest.mark.django_db

ONE = "services:\n  web:\n    image: app:1\n"
TWO = ONE.replace("app:1", "app:2") + "  job: {image: job:1}\nx-trailer: {needs: {valkey: }}\n"


@pytest.fixture
def allowed(git_server: GitServer, settings: Any) -> GitServer:
    settings.TRAILER_GIT_ALLOW = git_server.allow.split(",")
    return git_server


@pytest.fixture(scope="module")
def shop(git_server: GitServer) -> GitRepository:
    repository = git_server.repository("source-shop")
    repository.commit(
        {"trailer.yml": TWO, "bad/trailer.yml": "services: {a: {build: .}}\n"}, "Two"
    )
    return repository


@pytest.fixture
def stack(host: Host, owner: User, shop: GitRepository) -> Stack:
    made = make_stack(host, owner, "shop", repository=shop.file_url)
    StackRevision.objects.filter(stack=made).update(file_text=ONE)
    return Stack.objects.get(pk=made.pk)


def check(user: User, **body: Any) -> Any:
    return api_client(user).post("/api/v1/stacks/check/", body, format="json")


def test_a_repository_is_tested_before_anything_is_saved(
    allowed: GitServer, shop: GitRepository, owner: User
) -> None:
    answer = check(owner, repository=shop.url)
    assert answer.status_code == 200
    assert answer.json() | {"committed_at": ""} == {
        "commit": shop.head(),
        "author": "Ada Example",
        "commit_message": "Two",
        "committed_at": "",
        "file_name": "trailer.yml",
        "services": ["web", "job"],
        "needs": ["valkey"],
        "problem": "",
    }
    assert not Stack.objects.exists()


def test_a_registry_inside_is_told_to_a_member_before_anything_is_saved(
    allowed: GitServer, git_server: GitServer, owner: User, admin: User
) -> None:
    repository = git_server.repository("source-inside")
    text = ONE.replace("app:1", "127.0.0.1:5000/app:1")
    repository.commit({"trailer.yml": text}, "Inside")
    problem = check(owner, repository=repository.url).json()["problem"]
    assert problem.startswith("The registry 127.0.0.1:5000 is not an address of the internet.")
    assert check(admin, repository=repository.url).json()["problem"] == ""


def test_a_file_that_can_not_be_used_is_told_apart_from_a_repository_that_can_not_be_read(
    allowed: GitServer, shop: GitRepository, owner: User
) -> None:
    answer = check(owner, repository=shop.file_url, path="bad")
    assert answer.status_code == 200
    assert "services.a.build: is not supported" in answer.json()["problem"]
    refused = check(owner, repository=f"{allowed.url}/nowhere.git")
    assert (refused.status_code, refused.json()["code"]) == (400, "git")
    assert "There is no repository at" in refused.json()["message"]


def test_without_leave_nothing_inside_is_read(git_server: GitServer, owner: User) -> None:
    git_server.requests.clear()
    answer = check(owner, repository=f"{git_server.url}/source-shop.git")
    assert (answer.status_code, answer.json()["code"]) == (400, "git_refused")
    assert git_server.requests == []


def test_the_stored_credential_is_used_only_for_whoever_may_change_the_source(
    allowed: GitServer, stack: Stack, owner: User
) -> None:
    token = seal_mapping(stack, "credential_token", {"token": "s3cret-token"})
    Stack.objects.filter(pk=stack.pk).update(credential_token=token)
    editor = make_user("eve")
    make_grant(stack, editor, Role.EDITOR)
    body = {"repository": stack.repository, "stack": str(stack.pk)}
    assert check(owner, **body).status_code == 200
    assert check(editor, **body).status_code == 403
    assert check(make_user("mallory"), **body).status_code == 404


def test_a_stored_token_is_not_sent_to_another_server(
    stack: Stack, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = seal_mapping(stack, "credential_token", {"token": "s3cret-token"})
    near, far = "https://git.test/team/app.git", "https://evil.test/team/app.git"
    Stack.objects.filter(pk=stack.pk).update(credential_token=token, repository=near)
    used: list[tuple[str, bool]] = []

    def fetch(source: GitSource, _known: str = "") -> None:
        used.append((source.repository, source.credential is not None))
        raise GitError("Not today.")

    monkeypatch.setattr(GitSource, "fetch", fetch)
    aside = [
        "https://git.test/team/b.git",
        far,
        "https://git.test:8443/a.git",
        "http://git.test/a",
    ]
    for repository in aside:
        check(owner, repository=repository, stack=str(stack.pk))
    assert used == [(repository, n == 0) for n, repository in enumerate(aside)]
    client, url = api_client(owner), f"/api/v1/stacks/{stack.pk}/"
    refused = client.patch(url, {"repository": far}, format="json")
    assert refused.status_code == 400
    assert "credential" in refused.json()["fields"]
    assert Stack.objects.get(pk=stack.pk).repository == near
    assert client.patch(url, {"repository": aside[0]}, format="json").status_code == 200
    body = {"repository": far, "credential": None}
    assert client.patch(url, body, format="json").status_code == 200
    assert Stack.objects.get(pk=stack.pk).credential_token == ""


def test_what_deploying_would_change_is_told(
    allowed: GitServer, stack: Stack, shop: GitRepository, owner: User
) -> None:
    found = api_client(owner).get(f"/api/v1/stacks/{stack.pk}/diff/").json()
    assert found["available_commit"] == shop.head()
    assert "service job added" in found["changes"]
    assert "service web: image app:1 → app:2" in found["changes"]
    kinds = {(line["kind"], line["text"].strip()) for line in found["lines"]}
    assert {("removed", "image: app:1"), ("added", "image: app:2")} <= kinds


def test_a_repository_that_is_away_is_said_so_instead_of_a_comparison(
    stack: Stack, owner: User
) -> None:
    found = api_client(owner).get(f"/api/v1/stacks/{stack.pk}/diff/").json()
    assert "are read only where an administrator allows it" in found["problem"]
    assert found["lines"] == []


def test_a_value_is_encrypted_for_this_stack_alone(stack: Stack, owner: User) -> None:
    answer = api_client(owner).post(
        f"/api/v1/stacks/{stack.pk}/encrypt/", {"value": " pa$$ "}, format="json"
    )
    private = Secret(unseal(stack, "identity_token"))
    assert decrypt_value("A", answer.json()["secure"], private).reveal() == " pa$$ "


def test_the_page_asks_the_repository_only_for_the_changes(
    allowed: GitServer, stack: Stack, shop: GitRepository, owner: User
) -> None:
    Stack.objects.filter(pk=stack.pk).update(repository=shop.url)
    client = Client()
    client.force_login(owner)
    allowed.requests.clear()
    assert (
        "Asking the repository" in client.get(f"/stacks/{stack.pk}/?tab=changes").content.decode()
    )
    assert allowed.requests == []
    address = f"/stacks/{stack.pk}/?tab=changes&part=diff"
    html = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "Service job added" in html
    assert "<ins>    image: app:2</ins>" in html


def test_secrets_are_on_no_page(stack: Stack, owner: User) -> None:
    Stack.objects.filter(pk=stack.pk).update(
        secret_variables_token=seal_mapping(stack, "secret_variables_token", {"KEY": "canary-1"}),
        credential_token=seal_mapping(stack, "credential_token", {"token": "canary-2"}),
        webhook_secret_token="canary-3",
        variables={"LEVEL": "debug"},
    )
    client = Client()
    client.force_login(owner)
    for tab in ("overview", "history", "settings", "access"):
        html = client.get(f"/stacks/{stack.pk}/?tab={tab}").content.decode()
        assert "canary" not in html
        if tab == "settings":
            assert 'data-kept="KEY"' in html
            assert 'value="debug"' in html
            assert "A token is stored" in html
            assert stack.recipient in html


def test_a_services_page_leads_to_its_stack_and_offers_no_form(stack: Stack, owner: User) -> None:
    workspace = make_workspace(stack.host, owner, "shop-web")
    Workspace.objects.filter(pk=workspace.pk).update(stack=stack.pk, service="web")
    client = Client()
    client.force_login(owner)
    html = client.get(f"/workspaces/{workspace.pk}/").content.decode()
    assert f'Service web of the stack <a class="link" href="/stacks/{stack.pk}/">shop</a>' in html
    assert 'data-tab-name="logs"' in html
    assert 'data-tab-name="settings"' not in html


def test_an_administrator_of_standalone_trailer_reads_from_the_machine_itself(
    git_server: GitServer, shop: GitRepository, owner: User, admin: User, settings: Any
) -> None:
    for address in (shop.file_url, shop.url):
        body = {"repository": address, "branch": "main", "path": ""}
        assert check(admin, **body).status_code == 200
        assert check(owner, **body).status_code == 400
        settings.REDIS_URL = "redis://elsewhere"
        assert check(admin, **body).status_code == 400
        settings.REDIS_URL = ""
        settings.TRAILER_GIT_ALLOW = ["git.internal"]
        assert check(admin, **body).status_code == 400
        settings.TRAILER_GIT_ALLOW = None
