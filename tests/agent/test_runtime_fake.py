"""The in-memory engine keeps the contract."""

import pytest

from agent.runtime.fake import FakeRuntime
from tests.agent.runtime_contract import RuntimeContract


class TestFakeRuntime(RuntimeContract):
    @pytest.fixture
    def runtime(self) -> FakeRuntime:
        runtime = FakeRuntime()
        runtime.add_image("busybox:1")
        return runtime

    @pytest.fixture
    def image(self) -> str:
        return "busybox:1"

    @pytest.fixture
    def command(self) -> tuple[str, ...]:
        return ("sleep", "1000")
