"""Packages with holes that are known to us are pinned above the version that closed them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
FLOORS = {
    "cryptography": "43.0.1",
    "daphne": "4.2.2",
    "django": "5.2.8",
    "kombu": "5.4",
    "requests": "2.32.4",
    "urllib3": "2.6.0",
}


@pytest.mark.parametrize("file", ["requirements.txt", "deploy/agent-requirements.txt"])
def test_what_is_pinned_is_above_the_last_known_hole(file: str) -> None:
    pins = dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", (ROOT / file).read_text()))
    assert len(pins) > 5
    known = {name: pins[name] for name in FLOORS if name in pins}
    assert known
    low = {name: pin for name, pin in known.items() if Version(pin) < Version(FLOORS[name])}
    assert low == {}
