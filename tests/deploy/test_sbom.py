"""The bill of materials names everything that is pinned, with the hashes that are insisted on."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINS = {"server": "requirements.txt", "agent": "deploy/agent-requirements.txt"}


def bill(part: str) -> Any:
    done = subprocess.run(
        [sys.executable, "deploy/sbom.py", part],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("part", sorted(PINS))
def test_every_pinned_package_is_named_with_its_hashes(part: str) -> None:
    text = (ROOT / PINS[part]).read_text()
    wanted = set(re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE))
    found = [one for one in bill(part)["components"] if one["purl"].startswith("pkg:pypi/")]
    assert {(one["name"], one["version"]) for one in found} == wanted
    assert sum(len(one["hashes"]) for one in found) == text.count("--hash=")
    assert all(one["hashes"] for one in found)


def test_the_pages_scripts_are_named_and_what_only_tests_need_is_not() -> None:
    found = {one["name"]: one for one in bill("server")["components"]}
    assert found["htmx.org"]["hashes"][0]["alg"] == "SHA-512"
    assert len(found["htmx.org"]["hashes"][0]["content"]) == 128
    assert found["@xterm/xterm"]["purl"].startswith("pkg:npm/%40xterm/xterm@")
    assert "axe-core" not in found
    assert not [name for name in found if name.startswith("@esbuild/")]
