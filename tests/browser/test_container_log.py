"""The logs tab against a scripted host: follow, pause, search, times, the container before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect

from tests.browser.accessibility import serious_violations
from tests.browser.conftest import scroll

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent

LINES = 1_000_000
BATCH = 20_000
MOST_BYTES = 150 * 1024 * 1024


# Lines of usual length, with the engine's times. Made within the page: bringing 100 megabytes
# there would take longer than all the rest.
TALKS_A_LOT = """
const Real = WebSocket;
class Talker extends EventTarget {
  readyState = Real.OPEN;
  close() {}
  send() {
    setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data: '{"pong": 1}' })));
  }
  constructor() {
    super();
    setTimeout(() => this.dispatchEvent(new Event("open")));
    this.talk(0);
  }
  talk(start) {
    const batch = %d, encoder = new TextEncoder();
    if (start < %d) {
      let text = "";
      for (let number = start; number < start + batch; number += 1) {
        const time = `2026-11-16T06:00:00.${String(number).padStart(9, "0")}Z`;
        text += `${time} row ${number} of the log`.padEnd(91, ".") + "\\n";
      }
      const data = encoder.encode(text).buffer;
      setTimeout(() => {
        this.dispatchEvent(new MessageEvent("message", { data }));
        this.talk(start + batch);
      });
    }
  }
}
globalThis.WebSocket = new Proxy(Real, {
  construct: (_, [address]) => (address.includes("/logs/") ? new Talker() : new Real(address)),
});
"""

TOLD = """
document.addEventListener("trailer:state", ({ detail }) => {
  globalThis.wasTold ||= detail.resource.startsWith("workspace:");
});
"""


def line(number: int, text: str = "") -> str:
    return f"2026-11-16T06:{number // 60 % 60:02}:{number % 60:02}.{number:09}Z {text}\n"


class ScriptedLogs:
    def __init__(self) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.container = "a" * 64
        self.first = "".join(line(number, f"entry {number}") for number in range(300))
        self.is_dead = False

    def open(self, socket: WebSocketRoute) -> None:
        self.is_dead = False
        self.sockets.append(socket)
        socket.on_message(self._answer)
        socket.send(json.dumps({"container": self.container}))
        socket.send(self.first.encode())

    def say(self, text: str) -> None:
        self.sockets[-1].send(text.encode())

    def _answer(self, message: str | bytes) -> None:
        """The page says nothing but that it wants to hear something."""
        assert json.loads(message) == {"ping": 1}
        if not self.is_dead:
            self.sockets[-1].send(json.dumps({"pong": 1}))


def test_logs_are_followed_held_searched_and_resumed(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    logs = ScriptedLogs()
    page.route_web_socket("**/ws/workspaces/*/logs/*", logs.open)
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    page.get_by_role("tab", name="Logs").click()
    viewer = page.locator(f'[data-log="workspace:{workspace["id"]}"]')
    body = viewer.locator("[data-log-text]")
    expect(body).to_contain_text("entry 299")
    expect(body).to_contain_text("2026-11-16 06:04:59.000")
    assert "timestamps=1" in logs.sockets[0].url

    viewer.get_by_label("Times").uncheck()
    expect(body).not_to_contain_text("2026-11-16")
    logs.say(line(300, "\x1b[31m<b>red</b>\x1b[0m"))
    shown = body.locator(".ansi-fg-1")
    expect(shown).to_have_text("<b>red</b>")

    scroll(body, -2000)
    expect(viewer.get_by_role("button", name="Follow")).to_be_visible()
    logs.say("".join(line(number, f"later {number}") for number in range(301, 305)))
    expect(viewer.locator("[data-log-unseen]")).to_have_text("4 new")
    expect(body.get_by_text("later 304")).not_to_be_in_viewport()
    viewer.get_by_role("button", name="Follow").click()
    expect(body.get_by_text("later 304")).to_be_in_viewport()

    _search(viewer)
    assert serious_violations(page, within=".log") == []
    _copy(page, viewer)
    _break_and_come_back(logs, body)
    _show_the_container_before(page, viewer, workspace["id"])
    page.get_by_role("tab", name="Overview").click()
    expect(viewer).to_have_count(0)
    assert page_errors == []


def _copy(page: Page, viewer: Locator) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    viewer.get_by_role("button", name="Copy the logs").click()
    expect(page.locator(".toast", has_text="The log was copied.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert (copied[0], copied[-1], len(copied)) == ("entry 0", "later 304", 305)


def _break_and_come_back(logs: ScriptedLogs, body: Locator) -> None:
    # The socket breaks and comes back: nothing twice, and a new container says so.
    logs.first += "".join(line(number, f"later {number}") for number in range(301, 310))
    logs.sockets[-1].close(code=1012)
    expect(body).to_contain_text("later 309")
    assert body.inner_text().count("later 304") == 1
    logs.container = "b" * 64
    logs.sockets[-1].send(json.dumps({"container": logs.container}))
    logs.say(line(400, "fresh start"))
    expect(body).to_contain_text(f"from here on it is {'b' * 12}")
    expect(body).to_contain_text("fresh start")

    # A break within a line: it goes on where it stood.
    whole = line(401, "one half and the other half")
    logs.say(whole[:45])
    expect(body).to_contain_text("one half")
    logs.first += line(400, "fresh start") + whole
    logs.sockets[-1].close(code=1012)
    expect(body).to_contain_text("one half and the other half")
    assert body.inner_text().count("one half") == 1
    expect(body).not_to_contain_text("some lines were missed")


def _search(viewer: Locator) -> None:
    body = viewer.locator("[data-log-text]")
    search = viewer.get_by_label("Search the logs")
    search.fill("ENTRY 12")
    expect(viewer.locator("[data-log-found]")).to_have_text("11 of 11")
    expect(body.locator(".is-current")).to_have_text("entry 129")
    search.press("Enter")
    expect(body.locator(".is-current")).to_have_text("entry 12")
    search.fill("06:04")
    expect(viewer.locator("[data-log-found]")).to_have_text("nothing found")
    search.fill("")
    viewer.get_by_role("button", name="Follow").click()


def _show_the_container_before(page: Page, viewer: Locator, workspace_id: str) -> None:
    body = viewer.locator("[data-log-text]")

    def before(route: Route) -> None:
        route.fulfill(body=line(7, "died of hunger"), content_type="text/plain")

    page.route("**/api/v1/workspaces/*/logs/?*previous=1*", before)
    viewer.get_by_label("Container", exact=True).select_option("previous")
    expect(body).to_contain_text("died of hunger")
    expect(body).not_to_contain_text("fresh start")
    expect(viewer.get_by_label("Download the logs")).to_have_attribute(
        "href", f"/api/v1/workspaces/{workspace_id}/logs/?tail=all&previous=1"
    )

    # Back to this container while the other one's log is still on its way.
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/workspaces/*/logs/?*previous=1*", hold)
    which = viewer.get_by_label("Container", exact=True)
    which.select_option("")
    expect(body).to_contain_text("fresh start")
    with page.expect_request("**/logs/?*previous=1*"):
        which.select_option("previous")
    which.select_option("")
    expect(body).to_contain_text("fresh start")
    with page.expect_response("**/logs/?*previous=1*"):
        before(held[0])
    expect(viewer.locator("[data-log-state]")).to_have_text("live")
    expect(body).not_to_contain_text("died of hunger")


def test_logs_whose_socket_is_dead_without_knowing_it_go_on(
    with_own_clock: Page, agent: PretendAgent
) -> None:
    page, logs = with_own_clock, ScriptedLogs()
    page.route_web_socket("**/ws/workspaces/*/logs/*", logs.open)
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    page.clock.install()
    page.add_init_script(TOLD)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=logs")
    body = page.locator("[data-log-text]")
    expect(body).to_contain_text("entry 299")
    # The workspace's first state makes the page ask the log for an answer: a jump of the clock
    # must not come before that is there.
    page.wait_for_function("globalThis.wasTold")
    for _ in range(2):
        page.evaluate("0")
    # One that is only quiet answers, and is left alone.
    page.clock.fast_forward(60_000)
    page.clock.fast_forward(5_000)
    assert len(logs.sockets) == 1
    logs.is_dead = True
    logs.first += line(300, "printed meanwhile")
    page.clock.fast_forward(60_000)
    page.clock.fast_forward(60_000)
    expect(body).to_contain_text("printed meanwhile")
    assert body.inner_text().count("entry 299") == 1


def test_a_flood_of_lines_is_drawn_ten_times_a_second_and_a_click_at_once(
    with_own_clock: Page, agent: PretendAgent
) -> None:
    page, logs = with_own_clock, ScriptedLogs()
    page.route_web_socket("**/ws/workspaces/*/logs/*", logs.open)
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    page.clock.install()
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=logs")
    body = page.locator("[data-log-text]")
    expect(body).to_contain_text("entry 299")
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    body.evaluate(
        """(body) => {
          window.drawn = 0;
          const rows = body.querySelector(".line-rows");
          new MutationObserver(() => (window.drawn += 1)).observe(rows, { childList: true });
        }"""
    )
    for number in range(300, 400):
        logs.say(line(number, f"flood {number}"))
        page.clock.run_for(20)
    page.clock.run_for(200)
    expect(body).to_contain_text("flood 399")
    drawn = page.evaluate("window.drawn")
    assert 2 <= drawn <= 24, f"{drawn} times in two seconds"
    follow = page.locator("[data-log-follow]")
    follow.evaluate("(button) => button.click()")
    page.clock.run_for(20)
    expect(follow).to_have_attribute("aria-pressed", "false")


def test_a_million_lines_are_held_searched_and_stay_small(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    page.add_init_script(TALKS_A_LOT % (BATCH, LINES))
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=logs")
    viewer = page.locator("[data-log^='workspace:']")
    body = viewer.locator("[data-log-text]")
    expect(viewer.locator("[data-log-state]")).to_have_text("live")
    expect(body).to_contain_text(f"row {LINES - 1} of the log", timeout=60_000)
    expect(viewer.locator("[data-log-dropped]")).to_be_hidden()

    body.evaluate("(body) => { body.scrollTop = 0; }")
    expect(body).to_contain_text("row 3 of the log")
    viewer.get_by_label("Search the logs").fill("row 654321 ")
    expect(viewer.locator("[data-log-found]")).to_have_text("1 of 1", timeout=30_000)
    expect(body.locator(".is-current")).to_contain_text("row 654321 of the log")
    assert body.locator(".line").count() < 200

    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    used = (
        heap["usedSize"] + heap.get("backingStorageSize", 0) + heap.get("embedderHeapUsedSize", 0)
    )
    assert used < MOST_BYTES, f"{used / 2**20:.0f} MiB"
