"""The security rules of deploy/semgrep: each is shown to find something, no exception is stale.

`make check` runs them over the product; here is what semgrep itself does not watch.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "semgrep"
FOLDERS = ("agent", "trailer", "hosts", "images", "workspaces", "deploy", "templates", "static/js")
# What a line holds that an exception of a rule is for.
NEEDED_BY = {
    "unscoped-read": r"\b[A-Z]\w+\.objects\.(?!visible_to\b)",
    "sealed-elsewhere": r"\bFernet\(",
    "form-without-csrf": r"\bcsrf_exempt\b",
    "unchecked-certificate": r"\bssl\.CERT_NONE\b",
}


def _rules() -> dict[str, str]:
    return {
        rule["id"]: path.stem
        for path in sorted(RULES.glob("*.yaml"))
        for rule in yaml.safe_load(path.read_text())["rules"]
    }


def _exceptions() -> list[tuple[str, str, str]]:
    """The place of each, its rule, and the line that it lets pass: the next one."""
    found = []
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")):
        if path.suffix not in (".py", ".html", ".js") or RULES in path.parents:
            continue
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines[:-1]):
            if exception := re.search(r"nosem(?:grep)?\b:? ?([\w-]*)", line):
                found.append(
                    (f"{path.relative_to(ROOT)}:{number + 1}", exception[1], lines[number + 1])
                )
    return found


def test_every_rule_has_a_line_that_it_must_find() -> None:
    rules = _rules()
    shown = {
        (rule, path.stem)
        for path in RULES.iterdir()
        if path.suffix != ".yaml"
        for rule in re.findall(r"ruleid: ([\w-]+)", path.read_text())
    }
    assert len(rules) >= 18
    assert set(rules.items()) - shown == set()


def test_an_exception_names_its_rule_and_stands_where_it_is_needed() -> None:
    exceptions = _exceptions()
    assert len(exceptions) >= 10
    wrong = [
        f"{place}: {rule or 'all rules'}"
        for place, rule, line in exceptions
        if rule not in NEEDED_BY or not re.search(NEEDED_BY[rule], line)
    ]
    assert wrong == []
