"""Stacks in a real browser, on a real engine and git server: from repository to rollback."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import TYPE_CHECKING

import requests
from playwright.sync_api import Page, expect

from tests.ground.browser import save_screenshot
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED

if TYPE_CHECKING:
    import docker
    from playwright.sync_api import Locator

    from tests.ground.gitserver import GitRepository, GitServer

_WAIT = 60_000


def stack_file(greeting: str, more: str = "") -> str:
    return f"""\
services:
  web:
    image: {BUSYBOX}
    command: {json.dumps(RUN_UNTIL_STOPPED)}
    environment: {{GREETING: "{greeting} ${{config.NAME}}", KEY: "${{secret.KEY}}"}}
    x-trailer: {{update_policy: if_missing, drain_timeout: 1s}}
{more}"""


def greeting(client: docker.DockerClient) -> str:
    container = client.containers.get("trailer-shop-web")
    [line] = [line for line in container.attrs["Config"]["Env"] if line.startswith("GREETING=")]
    return str(line.partition("=")[2])


def create(page: Page, repository: GitRepository) -> None:
    """The wizard, with a test of the repository that first fails."""
    page.get_by_role("link", name="Stacks", exact=True).click()
    page.get_by_role("link", name="New stack").first.click()
    page.get_by_label("Name", exact=True).fill("shop")
    page.get_by_label("Address").fill(f"{repository.url}-wrong")
    verdict = page.locator("[data-test-result]")
    page.get_by_role("button", name="Test access").click()
    expect(verdict).to_contain_text("There is no repository at", timeout=_WAIT)
    page.get_by_label("Address").fill(repository.url)
    page.get_by_role("button", name="Test access").click()
    expect(verdict).to_contain_text("can be read. Services: web.", timeout=_WAIT)
    for name, value, secret in (("NAME", "reader", False), ("KEY", "canary-77", True)):
        page.get_by_role("button", name="Add variable").click()
        page.locator("[name=env_name]").last.fill(name)
        page.locator("[name=env_value]").last.fill(value)
        if secret:
            page.locator("[name=env_secret]").last.check()
    save_screenshot(page, "stack-wizard")
    page.get_by_role("button", name="Create stack").click()
    page.wait_for_url(re.compile(r"/stacks/[0-9a-f-]{36}/$"))


def deploy_a_change(page: Page, repository: GitRepository, badge: Locator) -> None:
    """What would change is shown first; then it is deployed, by one button."""
    commit = repository.commit({"trailer.yml": stack_file("bye")}, "Say bye")
    page.get_by_role("tab", name="Changes").click()
    panel = page.locator("#tab-panel")
    expect(panel).to_contain_text("Service web: environment changed", timeout=_WAIT)
    expect(panel.locator("ins")).to_contain_text("bye")
    save_screenshot(page, "stack-changes")
    page.get_by_role("tab", name="History").click()
    page.locator('[data-action="deploy"]').click()
    newest = page.locator("[data-sync]").first
    expect(newest).to_contain_text("Say bye", timeout=_WAIT)
    expect(newest.locator("[data-outcome]")).to_have_text("Deployed", timeout=_WAIT)
    expect(newest).to_contain_text(commit[:8])
    expect(badge).to_have_text("Synced", timeout=_WAIT)


def roll_back(page: Page) -> None:
    page.get_by_role("button", name="Roll back to revision 1").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    newest = page.locator("[data-sync]").first
    expect(newest).to_contain_text("Rollback requested", timeout=_WAIT)
    expect(newest.locator("[data-outcome]")).to_have_text("Deployed", timeout=_WAIT)
    save_screenshot(page, "stack-history")
    page.get_by_role("tab", name="Overview").click()
    expect(page.locator("#tab-panel")).to_contain_text("by a rollback, until somebody deploys")


def push_with_a_webhook(page: Page, repository: GitRepository, badge: Locator) -> None:
    """A broken commit, announced by a signed delivery: the old service stays, one message."""
    page.get_by_role("tab", name="Settings").click()
    page.get_by_role("button", name="Make a secret").click()
    secret = page.locator("#webhook-secret")
    expect(secret).to_have_text(re.compile("[0-9a-f]{64}"))
    address = page.locator("#webhook-url").inner_text()
    key = secret.inner_text()
    save_screenshot(page, "stack-settings")
    page.locator('[data-action="deploy"]').click()
    expect(badge).to_have_text("Synced", timeout=_WAIT)
    repository.commit({"trailer.yml": stack_file("broken", "    privileged: true\n")}, "Break")
    body = json.dumps({"ref": "refs/heads/main", "after": repository.head()}).encode()
    signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signature}"}
    assert requests.post(address, body, headers=headers, timeout=30).status_code == 202
    expect(badge).to_have_text("Failed", timeout=_WAIT)
    message = page.locator(".page-message [data-message-for]")
    expect(message).to_contain_text("services.web.privileged: is not supported")


def test_a_stack_comes_from_git_follows_it_and_goes_back(
    on_engine: Page, git_server: GitServer, engine_docker: docker.DockerClient
) -> None:
    page, client = on_engine, engine_docker
    repository = git_server.repository("shop")
    repository.commit({"trailer.yml": stack_file("hello")}, "Say hello")
    expect(page.locator('[data-resource^="host:"]').first).to_have_text("Online", timeout=_WAIT)
    create(page, repository)
    badge = page.locator('.page-head [data-resource^="stack:"]')
    expect(badge).to_have_text("Synced", timeout=_WAIT)
    expect(page.locator('[data-resource^="workspace:"]')).to_have_text("Running", timeout=_WAIT)
    expect(page.locator("[data-log^='sync:'] [data-log-text]")).to_contain_text("Say hello")
    page.evaluate("window.notReloaded = true")
    assert greeting(client) == "hello reader"
    save_screenshot(page, "stack-overview")
    deploy_a_change(page, repository, badge)
    assert greeting(client) == "bye reader"
    roll_back(page)
    assert greeting(client) == "hello reader"
    push_with_a_webhook(page, repository, badge)
    assert greeting(client) == "bye reader"
    assert page.evaluate("window.notReloaded")
    assert "canary-77" not in page.content()
