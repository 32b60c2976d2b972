"""The editor of a Dockerfile: a plain field for form and keyboard, with colours behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.pretend_agent import PretendAgent

COLOURED = """# syntax=docker/dockerfile:1
FROM debian:12 AS base
  run --mount=type=cache apt-get install -y "curl" \\
# between the lines
    $EXTRA ${MORE:-none}
COPY <<EOF /etc/motd
FROM is no instruction here
EOF
BROKEN line
"""
HOSTILE = (
    '<img src=x onerror=alert(1)>\nRUN "</textarea><script>alert(2)</script>" $<b>\n'
    "# &lt;i&gt; \u202e reversed \x00 \ud7ff\n"
)


@pytest.fixture
def editor(signed_in: Page, agent: PretendAgent) -> Locator:
    signed_in.goto(f"{agent.trailer.url}/images/new/?kind=build&host={agent.host['id']}")
    return signed_in.get_by_label("Dockerfile")


def painted(page: Page) -> list[list[list[str]]]:
    """[text, class] of the parts of each painted line."""
    found: Any = page.locator(".editor-line").evaluate_all(
        """lines => lines.map((line) => [...line.childNodes].map((part) => [
          part.textContent, part.className ?? ""]))"""
    )
    return found  # type: ignore[no-any-return]


def put(page: Page, text: str) -> None:
    """At once: typing a megabyte would take the browser itself too long."""
    page.evaluate(
        "text => { const field = document.querySelector('[name=dockerfile]'); field.value = text;"
        " field.dispatchEvent(new Event('input', { bubbles: true })); }",
        text,
    )


def words(page: Page, kind: str) -> list[str]:
    return [text for line in painted(page) for text, name in line if name == f"code-{kind}"]


def test_what_is_painted_is_what_is_written_and_says_what_it_is(
    signed_in: Page, editor: Locator
) -> None:
    page = signed_in
    editor.fill(COLOURED)
    expect(page.locator(".editor-line")).to_have_count(len(COLOURED.split("\n")))
    assert "\n".join(page.locator(".editor-line").all_text_contents()) == COLOURED
    assert words(page, "instruction") == ["FROM", "run", "COPY"]
    assert words(page, "unknown") == ["BROKEN"]
    assert words(page, "keyword") == ["AS"]
    assert words(page, "flag") == ["--mount"]
    assert words(page, "variable") == ["$EXTRA", "${MORE:-none}"]
    assert words(page, "comment") == ["# syntax=docker/dockerfile:1", "# between the lines"]
    assert words(page, "string") == ['"curl"', "FROM is no instruction here", "EOF"]
    numbers = page.locator(".editor-numbers > *").all_text_contents()
    assert numbers == [str(number) for number in range(1, len(COLOURED.split("\n")) + 1)]
    # Both lie exactly on each other, also after scrolling.
    editor.fill(f"RUN {'x' * 400}\n" * 80)
    editor.evaluate("field => field.scrollTo(120, 300)")
    expect(page.locator(".editor-paint")).to_have_css(
        "transform", "matrix(1, 0, 0, 1, -120, -300)"
    )


def test_it_stays_a_field_for_keyboard_form_and_screen_reader(
    signed_in: Page, editor: Locator, agent: PretendAgent
) -> None:
    page = signed_in
    expect(editor).to_have_attribute("name", "dockerfile")
    expect(page.locator(".editor-back")).to_have_attribute("aria-hidden", "true")
    editor.focus()
    page.keyboard.type("FROM busybox\nRUN true; \\\n    echo one; \\")
    page.keyboard.press("Enter")
    page.keyboard.type("echo two")
    text = "FROM busybox\nRUN true; \\\n    echo one; \\\n    echo two"
    expect(editor).to_have_value(text)
    page.keyboard.press("Control+z")
    assert editor.input_value() != text
    page.keyboard.press("Control+Shift+z")
    expect(editor).to_have_value(text)
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
    page.get_by_label("Name", exact=True).fill("typed")
    page.get_by_role("button", name="Build image").click()
    page.wait_for_url("**/images/*-*/")
    [made] = agent.read(f"/images/?host={agent.host['id']}&search=typed")["results"]
    assert made["dockerfile"] == text


def test_hostile_and_huge_text_is_only_text_and_only_what_is_in_view_is_painted(
    signed_in: Page, editor: Locator, page_errors: list[str]
) -> None:
    page = signed_in
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    editor.fill(HOSTILE)
    expect(page.locator(".editor-line").first).to_have_text("<img src=x onerror=alert(1)>")
    tags = page.locator(".editor-back *").evaluate_all(
        "all => [...new Set(all.map(e => e.tagName))]"
    )
    assert set(tags) == {"DIV", "SPAN"}
    # A megabyte.
    put(page, "RUN echo 0123456789012345678901234567890123456789\n" * 20_000)
    expect(page.locator(".editor-numbers > *").first).to_have_text("1")
    assert page.locator(".editor-line").count() < 200
    # One line without end is shown by the field itself.
    put(page, f"RUN {'y' * 100_000}")
    expect(editor).to_have_class("textarea mono editor-field is-plain")
    expect(page.locator(".editor-line")).to_have_count(0)
    assert page_errors == []


def test_the_line_a_build_failed_at_is_marked_until_it_is_edited(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    text = "# first\nFROM busybox\nRUN one && \\\n    two\nRUN three\n"
    image = agent.image(kind="build", dockerfile=text)
    agent.says_build(image, "building")
    log = "Step 1/3 : FROM busybox\nStep 2/3 : RUN one &&     two\nno such command\n"
    agent.writes_log(image, 0, log)
    agent.says_build(image, "failed", message="returned a non-zero code: 127")
    page.goto(f"{agent.trailer.url}/images/{image['id']}/")
    page.get_by_text("Settings", exact=True).click()
    wrong = page.locator(".editor-line.is-wrong")
    expect(wrong).to_have_text("RUN one && \\")
    page.get_by_label("Dockerfile").press("End")
    page.keyboard.type(" ")
    expect(wrong).to_have_count(0)
    # The engine names the line itself if it can't even read the file.
    agent.trailer.api("POST", f"/images/{image['id']}/build/", json={})
    message = "dockerfile parse error line 5: unknown instruction: RAN"
    agent.says_build(image, "failed", message=message)
    page.reload()
    page.get_by_text("Settings", exact=True).click()
    expect(wrong).to_have_text("RUN three")
