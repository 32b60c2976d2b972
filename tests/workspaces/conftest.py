"""Fixtures of the workspace tests."""

from __future__ import annotations

import pytest

from tests.workspaces.scene import Scene, make_scene


@pytest.fixture
def scene(db: None) -> Scene:
    return make_scene()
