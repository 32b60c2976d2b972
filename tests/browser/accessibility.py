"""What axe finds wrong with a page, in words."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

_AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
_SERIOUS = ("serious", "critical")
_RUN = """async ([where, rules]) => {
  const only = rules.length > 0 ? { runOnly: { type: "rule", values: rules } } : {};
  // No rule of ours reads style sheets, which axe would fetch once more.
  const quick = { resultTypes: ["violations"], preload: false };
  const found = await axe.run(where, { ...quick, ...only });
  return found.violations.map(({ id, impact, nodes }) =>
    [impact, id, nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + node.failureSummary)]);
}"""


@cache
def _source() -> str:
    return _AXE.read_text()


def serious_violations(page: Page, *rules: str, within: str = "html") -> list[str]:
    """Empty when everybody can use the page, as far as a program tells; by all rules or some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    return [
        f"{rule}: {nodes}"
        for impact, rule, nodes in page.evaluate(_RUN, [within, rules])
        if impact in _SERIOUS
    ]
