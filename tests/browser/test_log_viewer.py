"""The log viewer: live, without a gap or a double, under the reader's control, and bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Dialog, Page, WebSocketRoute, expect

from tests.browser import hostile_output
from tests.browser.conftest import scroll

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.pretend_agent import PretendAgent

SOCKET = "**/ws/builds/**"
# As behind a proxy that lets no socket of a build through: it closes without having opened.
NO_BUILD_SOCKET = """
  const Real = window.WebSocket;
  window.WebSocket = new Proxy(Real, {
    construct(target, [url]) {
      if (!url.includes("/ws/builds/")) return new target(url);
      const dead = Object.assign(new EventTarget(), { close: () => {} });
      setTimeout(() => dead.dispatchEvent(new CloseEvent("close", { code: 1006 })));
      return dead;
    },
  });
"""
AT_END = "body => body.scrollHeight - body.scrollTop - body.clientHeight < 24"


@dataclass
class Log:
    """A build whose output the test writes."""

    agent: PretendAgent
    image: Any
    offset: int = 0

    def write(self, text: str | bytes) -> None:
        data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
        self.agent.writes_log(self.image, self.offset, data)
        self.offset += len(data)

    def open(self, page: Page) -> Locator:
        page.goto(f"{self.agent.trailer.url}/images/{self.image['id']}/")
        return page.locator("[data-log-text]")


@pytest.fixture
def log(agent: PretendAgent) -> Log:
    image = agent.image(kind="build", dockerfile="FROM busybox\n")
    agent.says_build(image, "building", progress=0)
    return Log(agent, image)


def text_of(shown: Locator) -> str:
    return shown.evaluate("body => body.textContent")  # type: ignore[no-any-return]


def numbered(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


def test_lines_appear_as_they_are_written_in_colour_and_with_the_step(
    signed_in: Page, log: Log, page_errors: list[str]
) -> None:
    shown = log.open(signed_in)
    expect(signed_in.locator("[data-log-state]")).to_have_text("live")
    log.write("Step 1/2 : FROM busybox\n")
    expect(shown).to_have_text("Step 1/2 : FROM busybox\n")
    expect(signed_in.locator("[data-log-step]")).to_have_text("Step 1 of 2: FROM busybox")
    log.write("\x1b[1;31merror:\x1b[0m disk \x1b[38;5;208m95 %\x1b[0m\n10%\r")
    red = shown.locator(".ansi-fg-1.ansi-bold")
    expect(red).to_have_text("error:")
    expect(red).to_have_css("color", "rgb(255, 123, 114)")
    expect(shown.locator(".ansi-fg-208")).to_have_css("color", "rgb(255, 135, 0)")
    log.write("100%\nStep 2/2 : RUN true\n")
    expect(signed_in.locator("[data-log-step]")).to_have_text("Step 2 of 2: RUN true")
    expect(shown.locator(".line").nth(2)).to_have_text("100%\n")
    log.agent.says_build(log.image, "finished", progress=100, engine_id="sha256:1")
    expect(signed_in.locator("[data-log-state]")).to_have_text("complete")
    assert page_errors == []


def test_a_reload_half_way_loses_nothing_and_repeats_nothing(signed_in: Page, log: Log) -> None:
    shown = log.open(signed_in)
    log.write(numbered(1, 50))
    expect(shown).to_contain_text("line 50\n")
    signed_in.reload()
    log.write(numbered(51, 60))
    expect(shown).to_contain_text("line 60\n")
    assert text_of(shown) == numbered(1, 60)


def test_a_socket_that_breaks_is_resumed_where_it_broke(signed_in: Page, log: Log) -> None:
    sockets: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        sockets.append(route)
        route.connect_to_server()

    signed_in.route_web_socket(SOCKET, pass_on)
    shown = log.open(signed_in)
    log.write("before – ")
    expect(shown).to_have_text("before – ")
    for number in range(3):
        sockets[-1].close(code=1012)
        log.write(f"{number}\nafter – ")
        expect(shown).to_contain_text(f"{number}\nafter – ")
        expect(signed_in.locator("[data-log-state]")).to_have_text("live")
    assert text_of(shown) == "before – 0\nafter – 1\nafter – 2\nafter – "
    assert len(sockets) == 4


def test_lines_that_come_after_the_end_are_shown_without_a_reload(
    signed_in: Page, log: Log
) -> None:
    shown, state = log.open(signed_in), signed_in.locator("[data-log-state]")
    log.write("early\n")
    # The host says how much there will be: until then the log is not complete.
    log.agent.says_build(log.image, "failed", message="No.", log_bytes=len("early\nlate\n"))
    badge = signed_in.locator(f'[data-resource="image:{log.image["id"]}"]')
    expect(badge).to_have_text("Failed")
    expect(state).to_have_text("live")
    log.write("late\n")
    expect(state).to_have_text("complete")
    # Lines are drawn ten times a second at most.
    expect(shown).to_have_text("early\nlate\n")
    # And what nobody expected any more is fetched all the same.
    log.write("later still\n")
    expect(shown).to_have_text("early\nlate\nlater still\n")
    expect(state).to_have_text("complete")


def test_where_no_socket_comes_through_the_log_is_asked_for(signed_in: Page, log: Log) -> None:
    signed_in.add_init_script(NO_BUILD_SOCKET)
    shown = log.open(signed_in)
    log.write(numbered(1, 3))
    expect(shown).to_have_text(numbered(1, 3))
    log.write(numbered(4, 5))
    expect(shown).to_have_text(numbered(1, 5), timeout=20_000)
    log.agent.says_build(log.image, "failed", message="No.")
    expect(signed_in.locator("[data-log-state]")).to_have_text("complete", timeout=20_000)


def test_scrolling_up_pauses_and_the_button_follows_again(signed_in: Page, log: Log) -> None:
    shown = log.open(signed_in)
    log.write(numbered(1, 200))
    expect(shown).to_contain_text("line 200\n")
    follow = signed_in.locator("[data-log-follow]")
    expect(follow).to_have_attribute("aria-pressed", "true")
    assert shown.evaluate(AT_END)
    scroll(shown, -400)
    expect(follow).to_have_attribute("aria-pressed", "false")
    place = shown.evaluate("body => body.scrollTop")
    log.write(numbered(201, 203))
    expect(signed_in.locator("[data-log-unseen]")).to_have_text("3 new")
    assert shown.evaluate("body => body.scrollTop") == place
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    expect(signed_in.locator("[data-log-unseen]")).to_be_empty()
    assert shown.evaluate(AT_END)
    log.write(numbered(204, 300))
    expect(shown).to_contain_text("line 300\n")
    assert shown.evaluate(AT_END)


def test_a_log_is_held_at_its_end_while_lines_come_and_followed_from_below(
    signed_in: Page, log: Log
) -> None:
    shown, follow = log.open(signed_in), signed_in.locator("[data-log-follow]")
    log.write(numbered(1, 300))
    expect(shown).to_contain_text("line 300\n")
    # In one breath with lines that lead to the end.
    for number in range(301, 304):
        log.write(f"line {number}\n")
        expect(shown).to_contain_text(f"line {number}\n")
        follow.click()
        expect(follow).to_have_attribute("aria-pressed", "false")
        follow.click()
        expect(follow).to_have_attribute("aria-pressed", "true")
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "false")
    log.write(numbered(304, 305))
    expect(signed_in.locator("[data-log-unseen]")).to_have_text("2 new")
    scroll(shown, 4000)
    expect(follow).to_have_attribute("aria-pressed", "true")


def test_hostile_output_stays_text_on_the_page(
    signed_in: Page, log: Log, page_errors: list[str]
) -> None:
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    signed_in.on("dialog", note)
    signed_in.add_init_script(
        "window.refused = []; document.addEventListener('securitypolicyviolation',"
        " (event) => window.refused.push(event.violatedDirective));"
    )
    log.write("".join(f"{payload}\x1b[0m\n" for payload, _ in hostile_output.lines()))
    log.write(b"\xff\xfe\x80 broken \xc3\n\xf0\x9f\x9a\x80 and the end\n")
    shown = log.open(signed_in)
    expect(shown).to_contain_text("\U0001f680 and the end")
    found = shown.evaluate(
        """body => [...body.querySelectorAll("*")].map((element) => [
          element.tagName, element.getAttributeNames().join(), element.className])"""
    )
    assert {tag for tag, _, _ in found} == {"DIV", "SPAN"}
    assert {names for _, names, _ in found} == {"class", "class,data-line", "class,style"}
    classes = {name for _, _, names in found for name in names.split()}
    own = {name for name in classes if not name.startswith("ansi-")}
    assert own == {"line-space", "line-rows", "line"}
    assert dialogs == []
    assert signed_in.evaluate("window.refused") == []
    assert signed_in.title().endswith("· Trailer")
    assert page_errors == []


def test_a_long_log_keeps_the_page_small_and_leads_to_the_whole(signed_in: Page, log: Log) -> None:
    page, shown = signed_in, log.open(signed_in)
    log.write(numbered(1, 16_000))
    expect(shown).to_contain_text("line 16000\n", timeout=30_000)
    assert shown.locator(".line").count() < 200
    shown.evaluate("body => { body.scrollTop = 0; }")
    expect(shown).to_contain_text("line 1\n")
    whole = page.get_by_label("Download the whole log").get_attribute("href")
    answer = page.request.get(f"{log.agent.trailer.url}{whole}")
    assert answer.text() == numbered(1, 16000)
    log.write("x" * 3_000_000 + "\nlast line\n")
    page.locator("[data-log-follow]").click()
    expect(shown).to_contain_text("last line\n", timeout=30_000)
    expect(shown).to_contain_text("more bytes in this line]")
    assert len(text_of(shown)) < 20_000
    # Beyond a million lines the oldest go, and the page says so.
    expect(page.locator("[data-log-dropped]")).to_be_hidden()
    log.write("y\n" * 1_100_000)
    expect(page.locator("[data-log-dropped]")).to_contain_text("earlier lines left this page")
    expect(shown).not_to_contain_text("last line")


def test_a_line_begins_in_the_colours_that_the_one_before_left_on(
    signed_in: Page, log: Log
) -> None:
    log.write("\x1b[31mred\nstill\n\n\x1b[1mbold too\n\x1b[0mplain\nquiet\n")
    shown = log.open(signed_in)
    expect(shown).to_have_text("red\nstill\n\nbold too\nplain\nquiet\n")
    expect(shown.locator(".ansi-fg-1")).to_have_text(["red", "still", "bold too"])
    expect(shown.locator(".ansi-bold")).to_have_text("bold too")


def test_a_line_written_over_without_end_shows_what_was_written_last(
    signed_in: Page, log: Log
) -> None:
    shown = log.open(signed_in)
    log.write("".join(f"\rprogress {number}" for number in range(5_000)))
    expect(shown).to_have_text("progress 4999")
    log.write("\ndone\n")
    expect(shown).to_have_text("progress 4999\ndone\n")


def test_a_search_finds_counts_and_steps(signed_in: Page, log: Log) -> None:
    shown = log.open(signed_in)
    log.write(numbered(1, 120) + "\x1b[31mERR\x1b[0mOR here\n" + numbered(121, 130))
    expect(shown).to_contain_text("line 130\n")
    search, found = (signed_in.locator(f"[data-log-{part}]") for part in ("search", "found"))
    search.fill("error h")
    expect(found).to_have_text("1 of 1")
    expect(shown.locator(".is-current")).to_have_text("ERROR here\n")
    search.fill("LINE 12")
    expect(found).to_have_text("11 of 11")
    expect(shown.locator(".is-current")).to_have_text("line 129\n")
    search.press("Enter")
    expect(found).to_have_text("1 of 11")
    expect(shown.locator(".is-current")).to_be_in_viewport()
    search.fill("no such words")
    expect(found).to_have_text("nothing found")
    search.press("Escape")
    expect(found).to_be_empty()


def test_an_older_build_is_shown_on_request_and_a_newer_one_by_itself(
    signed_in: Page, log: Log
) -> None:
    page, agent = signed_in, log.agent
    log.write("the first\n")
    agent.says_build(log.image, "failed", message="It broke.")
    shown = log.open(page)
    expect(shown).to_have_text("the first\n")
    page.evaluate("window.notReloaded = true")
    page.locator('[data-action="build"]').click()
    expect(page.locator("[data-log-number]")).to_have_text("2")
    second = Log(agent, log.image)
    second.write("the second\n")
    expect(shown).to_have_text("the second\n")
    page.get_by_role("link", name="Log of build 1").click()
    expect(shown).to_have_text("the first\n")
    expect(page.locator("[data-log-number]")).to_have_text("1")
    assert page.evaluate("window.notReloaded")
    page.reload()
    expect(shown).to_have_text("the first\n")
    page.get_by_role("link", name="Log of build 2").click()
    expect(shown).to_have_text("the second\n")
