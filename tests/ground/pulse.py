"""Whether a page stays usable while much happens on it: the longest time it drew nothing."""

from playwright.sync_api import Page

_START = """() => {
  window.pulse = { longest: 0, last: performance.now() };
  const beat = (now) => {
    window.pulse.longest = Math.max(window.pulse.longest, now - window.pulse.last);
    window.pulse.last = now;
    requestAnimationFrame(beat);
  };
  requestAnimationFrame(beat);
}"""


def start_pulse(page: Page) -> None:
    """Begin to watch; a page that is loaded anew is not watched any more."""
    page.evaluate(_START)


def longest_pause_ms(page: Page) -> float:
    """The longest time between two frames since the last question."""
    longest: float = page.evaluate(
        "() => { const { longest } = window.pulse; window.pulse.longest = 0; return longest; }"
    )
    return longest
