"""Terminal output becomes lines of text with known classes, however it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import hostile_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from tests.ground.server import RunningTrailer

# Text between the runs of a line is theirs in order; `size` cuts the output into pieces.
PARSE = """async ({ text, size }) => {
  const { AnsiLines } = await import("/static/js/ansi.js");
  const parser = new AnsiLines();
  const lines = [];
  for (let at = 0; at < text.length; at += size) {
    lines.push(...parser.write(text.slice(at, at + size)));
  }
  const tail = parser.tail();
  const shown = tail ? [...lines, tail] : lines;
  return shown.map(({ runs, cut }) => ({ cut, runs: runs.map((run) => [run.text, run.classes]) }));
}"""
FLAGS = {"bold", "dim", "italic", "underline", "strike", "on"}


@pytest.fixture(scope="module")
def any_page(browser: Browser, pages_server: RunningTrailer) -> Iterator[Page]:
    """A page under our content policy, to run the module in."""
    page = browser.new_page()
    page.goto(f"{pages_server.url}/login/")
    yield page
    page.close()


def parse(page: Page, text: str, size: int = 1 << 30) -> list[Any]:
    found: list[Any] = page.evaluate(PARSE, {"text": text, "size": size})
    return found


def runs(page: Page, text: str) -> list[list[str]]:
    [line] = parse(page, text)
    found: list[list[str]] = line["runs"]
    return found


def is_known(name: str) -> bool:
    part, _, number = name.removeprefix("ansi-").partition("-")
    if not number:
        return part in FLAGS
    return part in {"fg", "bg"} and (
        number in {"ground", "ink"} or (number.isdecimal() and int(number) < 256)
    )


def test_hostile_output_leaves_only_its_text(any_page: Page) -> None:
    payloads = hostile_output.lines()
    assert len(payloads) >= 60
    found = parse(any_page, "".join(f"{text}\x1b[0m\n" for text, _ in payloads))
    assert ["".join(text for text, _ in line["runs"]) for line in found] == [
        text for _, text in payloads
    ]
    classes = {name for line in found for _, names in line["runs"] for name in names.split()}
    assert [name for name in classes if not is_known(name)] == []


@pytest.mark.parametrize("size", [1, 2, 7])
def test_it_does_not_matter_where_output_is_cut(any_page: Page, size: int) -> None:
    text = "".join(f"{payload}\n" for payload, _ in hostile_output.lines())
    assert parse(any_page, text, size) == parse(any_page, text)


@pytest.mark.parametrize(
    ("codes", "classes"),
    [
        ("31", "ansi-fg-1"),
        ("1;91", "ansi-bold ansi-fg-9"),
        ("42", "ansi-bg-2 ansi-on"),
        ("38;5;208", "ansi-fg-208"),
        ("38;2;255;135;0", "ansi-fg-208"),
        ("38:2::255:135:0", "ansi-fg-208"),
        ("38:2:255:135:0", "ansi-fg-208"),
        ("48;2;8;8;8", "ansi-bg-232 ansi-on"),
        ("2;3;4;9", "ansi-dim ansi-italic ansi-strike ansi-underline"),
        ("1;31;0", ""),
        ("1;22", ""),
        ("4;4:0", ""),
        ("31;39;42;49", ""),
        ("7", "ansi-bg-ink ansi-fg-ground ansi-on"),
        ("31;7", "ansi-bg-1 ansi-fg-ground ansi-on"),
        ("5;8;53;73", ""),
    ],
)
def test_colours_and_weights_become_classes(any_page: Page, codes: str, classes: str) -> None:
    assert runs(any_page, f"\x1b[{codes}mX") == [["X", classes]]


def test_a_colour_lasts_over_lines_until_it_is_reset(any_page: Page) -> None:
    found = parse(any_page, "\x1b[32mone\ntwo\x1b[m three\n")
    assert [line["runs"] for line in found] == [
        [["one", "ansi-fg-2"]],
        [["two", "ansi-fg-2"], [" three", ""]],
    ]


def test_a_carriage_return_writes_over_what_was_there(any_page: Page) -> None:
    assert runs(any_page, "abcdef\r\x1b[31mXY") == [["XY", "ansi-fg-1"], ["cdef", ""]]
    assert runs(any_page, "one\r\n") == [["one", ""]]


def test_a_line_of_ten_megabytes_is_cut_and_costs_little(any_page: Page) -> None:
    [line] = any_page.evaluate(
        """async () => {
          const { AnsiLines } = await import("/static/js/ansi.js");
          const parser = new AnsiLines();
          for (let mib = 0; mib < 10; mib += 1) {
            parser.write("x".repeat(2 ** 20));
          }
          return parser.write("\\n").map(({ runs, cut }) => [runs[0].text.length, cut]);
        }"""
    )
    assert line == [16_384, 10 * 2**20 - 16_384]


def test_output_made_to_be_slow_is_read_in_little_time(any_page: Page) -> None:
    colours = "\x1b[31mA\x1b[32mB" * 5000
    took = any_page.evaluate(
        """async (colours) => {
          const { AnsiLines } = await import("/static/js/ansi.js");
          const parser = new AnsiLines();
          const begun = performance.now();
          parser.write(colours);
          parser.write("\\rX".repeat(32_768));
          parser.write("\\x1b[" + "1".repeat(65_536));
          return performance.now() - begun;
        }""",
        colours,
    )
    # Without its limits this takes more than ten seconds.
    assert took < 3000
