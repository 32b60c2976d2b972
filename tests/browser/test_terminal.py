"""The terminal tab against a scripted host: typing, size, coming back, ending, colours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect

from tests.browser.accessibility import serious_violations
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.pretend_agent import PretendAgent


class ScriptedHost:
    """Echoes what is typed, remembers what it was told, ends and breaks when the test says so."""

    def __init__(self) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.queries: list[dict[str, list[str]]] = []
        self.controls: list[dict[str, Any]] = []
        self.typed = b""
        self.closed: list[int | None] = []
        self.is_dead = False

    def open(self, socket: WebSocketRoute) -> None:
        self.is_dead = False
        self.sockets.append(socket)
        self.queries.append(parse_qs(urlparse(socket.url).query))
        socket.on_message(self._receive)
        socket.on_close(lambda code, reason: self.closed.append(code))
        if "/attach/" in socket.url:
            # The main process is nobody's session: there is none to come back to.
            socket.send(json.dumps({"container": "a" * 64}))
        else:
            socket.send(json.dumps({"session": "s-1"}))
        again = "session" in self.queries[-1]
        socket.send(b"what was here before$ " if again else b"\x1b[38;2;255;128;0mready\x1b[0m$ ")

    @property
    def socket(self) -> WebSocketRoute:
        return self.sockets[-1]

    def _receive(self, message: str | bytes) -> None:
        if self.is_dead:
            return
        if isinstance(message, str) and "ping" in message:
            self.socket.send(json.dumps({"pong": 1}))
        elif isinstance(message, str):
            self.controls.append(json.loads(message))
        else:
            self.typed += message
            self.socket.send(message)


@pytest.fixture
def scripted(signed_in: Page) -> ScriptedHost:
    host = ScriptedHost()
    signed_in.route_web_socket("**/ws/workspaces/*/exec/*", host.open)
    signed_in.route_web_socket("**/ws/workspaces/*/attach/*", host.open)
    return host


def told(page: Page, condition: Callable[[], bool], what: str) -> None:
    """The scripted host hears only while the browser is waited for."""

    def heard() -> bool:
        page.evaluate("null")
        return condition()

    eventually(heard, 5, what)


def screen_text(page: Page) -> str:
    return str(page.locator(".xterm-rows").inner_text()).replace("\xa0", " ")


def test_a_terminal_is_typed_into_resized_lost_found_and_ended(
    signed_in: Page, agent: PretendAgent, scripted: ScriptedHost, page_errors: list[str]
) -> None:
    page = signed_in
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    page.get_by_role("tab", name="Terminal").click()
    terminal = page.locator(f'[data-terminal="workspace:{workspace["id"]}"]')
    rows = terminal.locator(".xterm-rows")
    expect(rows).to_contain_text("ready$")
    assert "cmd" not in scripted.queries[0]

    # Any colour a program asks for, under a policy that allows no inline style.
    colour = rows.locator("span", has_text="ready").first
    expect(colour).to_have_css("color", "rgb(255, 128, 0)")

    _type_and_resize(page, scripted, rows)

    # The network breaks: the same session is found again, with its screen.
    scripted.socket.close(code=1012)
    expect(rows).to_contain_text("what was here before$")
    assert scripted.queries[-1]["session"] == ["s-1"]
    expect(terminal.locator("[data-terminal-state]")).to_have_text("connected")
    assert "ready" not in screen_text(page)

    scripted.socket.send(json.dumps({"exit": 3}))
    scripted.socket.close(code=1000)
    expect(terminal.get_by_role("alert")).to_contain_text("ended with exit code 3")
    terminal.get_by_role("button", name="Start again").click()
    expect(rows).to_contain_text("ready$")
    assert "session" not in scripted.queries[-1]

    _choose_what_to_open(page, scripted, terminal)

    # The keyboard gets out again; leaving the tab ends the session at once.
    expect(rows).to_contain_text("ready$")
    page.keyboard.press("Shift+Escape")
    expect(terminal.get_by_role("button", name="Copy the selection")).to_be_focused()
    page.get_by_role("tab", name="Overview").click()
    expect(terminal).to_have_count(0)
    told(page, lambda: scripted.closed[-1:] == [1000], "the session was not left")
    assert page_errors == []


def _type_and_resize(page: Page, scripted: ScriptedHost, rows: Locator) -> None:
    page.keyboard.type("echo héllo")
    told(page, lambda: scripted.typed == "echo héllo".encode(), "the keys did not arrive")
    expect(rows).to_contain_text("echo héllo")
    before = scripted.controls[-1]["resize"]
    page.set_viewport_size({"width": 900, "height": 700})

    def smaller() -> bool:
        cols, lines = scripted.controls[-1]["resize"]
        return bool(cols < before[0] and lines < before[1])

    told(page, smaller, "the new size was not told")


def _choose_what_to_open(page: Page, scripted: ScriptedHost, terminal: Locator) -> None:
    terminal.get_by_label("What to open").select_option("bash")
    told(page, lambda: scripted.queries[-1].get("cmd") == ["bash"], "bash was not asked for")
    terminal.get_by_label("What to open").select_option("custom")
    terminal.get_by_label("Command").fill("python3 -c 'print(1)'")
    terminal.get_by_label("Command").press("Enter")
    told(
        page,
        lambda: scripted.queries[-1].get("cmd") == ["python3", "-c", "print(1)"],
        "the command was not asked for",
    )
    scripted.socket.send(json.dumps({"exit": 0}))
    scripted.socket.close(code=1000)
    expect(terminal.get_by_role("alert")).to_contain_text("exit code 0")
    terminal.get_by_label("What to open").select_option("attach")
    told(page, lambda: "/attach/" in scripted.socket.url, "no attach")
    expect(terminal.locator("[data-terminal-state]")).to_have_text("connected")
    scripted.typed = b""
    page.keyboard.type("for the main process")
    told(page, lambda: scripted.typed == b"for the main process", "attach takes no keys")
    # What the main process printed before does not come again, so the screen stays.
    opened = len(scripted.sockets)
    scripted.socket.close(code=1012)
    told(page, lambda: len(scripted.sockets) > opened, "no second attach")
    expect(terminal.locator("[data-terminal-state]")).to_have_text("connected")
    expect(terminal.locator(".xterm-rows")).to_contain_text("for the main process")


def test_a_terminal_waits_for_its_workspace_and_tells_a_refusal(
    signed_in: Page, agent: PretendAgent, scripted: ScriptedHost
) -> None:
    page = signed_in
    workspace = agent.workspace()
    agent.says_workspace(workspace, "stopped")
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=terminal")
    terminal = page.locator("[data-terminal]")
    expect(terminal).to_contain_text("The workspace is not running.")
    assert scripted.sockets == []
    agent.says_workspace(workspace, "running", container_id="b" * 64)
    expect(terminal.locator(".xterm-rows")).to_contain_text("ready$")
    scripted.socket.send(json.dumps({"error": "There is no bash in this container. Try sh."}))
    scripted.socket.close(code=1011)
    expect(terminal.get_by_role("alert")).to_contain_text("There is no bash")
    expect(terminal.get_by_role("button", name="Start again")).to_be_visible()


def test_a_terminal_whose_socket_is_dead_without_knowing_it_comes_back(
    signed_in: Page, agent: PretendAgent, scripted: ScriptedHost
) -> None:
    page = signed_in
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    page.clock.install()
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=terminal")
    rows = page.locator(".xterm-rows")
    expect(rows).to_contain_text("ready$")
    # One that is only quiet answers, and is left alone.
    page.clock.fast_forward(60_000)
    page.clock.fast_forward(5_000)
    assert len(scripted.sockets) == 1
    scripted.is_dead = True
    page.clock.fast_forward(60_000)
    page.clock.fast_forward(60_000)
    expect(rows).to_contain_text("what was here before$")
    assert scripted.queries[-1]["session"] == ["s-1"]
    # Closed as lost, not as left: the host must not end the session.
    assert scripted.closed == [4000]


def test_a_snapshot_leaves_the_shell_open_and_a_new_choice_opens_one(
    signed_in: Page, agent: PretendAgent, scripted: ScriptedHost
) -> None:
    page = signed_in
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/xterm.mjs", hold)
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="c" * 64)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=terminal")
    terminal = page.locator("[data-terminal]")
    told(page, lambda: held != [], "the terminal's script was not asked for")
    terminal.get_by_label("What to open").select_option("bash")
    for route in held:
        route.continue_()
    expect(terminal.locator(".xterm-rows")).to_contain_text("ready$")
    badge = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    for status in ("snapshotting", "running"):
        agent.says_workspace(workspace, status, container_id="c" * 64)
        expect(badge).to_have_attribute("data-status", status)
    assert serious_violations(page, within=".terminal") == []
    page.keyboard.type("still here")
    expect(terminal.locator(".xterm-rows")).to_contain_text("still here")
    assert [query.get("cmd") for query in scripted.queries] == [["bash"]]
    assert scripted.closed == []
