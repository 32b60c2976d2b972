"""Fixtures of the tests of stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workspaces.stacks.scene import make_stack_scene

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene


@pytest.fixture
def scene(db: None, monkeypatch: pytest.MonkeyPatch) -> StackScene:
    made = make_stack_scene()
    made.repository_again(monkeypatch)
    return made
