"""What a bench found, as rows of one table: figures, their ratio, and the goal beside it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """`goal` is a limit for `figure`; a row without one only informs."""

    name: str
    figure: float
    unit: str
    goal: float | None = None
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "met" if self.figure <= self.goal else "MISSED"


def ratio(name: str, ours: list[float], raw: list[float], goal: float) -> Row:
    """Medians of ours against the raw engine's, in one run."""
    detail = f"ours {spread(ours)}; raw {spread(raw)}"
    return Row(name, median(ours) / median(raw), "× raw", goal, detail)


def spread(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} s (p95 {percentile(seconds, 95):.2f}, n={len(seconds)})"


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def render(rows: list[Row]) -> str:
    """A Markdown table, so that it can go into the documentation as it is."""
    lines = ["| what | figure | goal | | detail |", "|---|---|---|---|---|"]
    for row in rows:
        goal = "" if row.goal is None else f"≤ {row.goal:g}"
        figure = f"{row.figure:.3g} {row.unit}"
        lines.append(f"| {row.name} | {figure} | {goal} | {row.verdict} | {row.detail} |")
    return "\n".join(lines)
