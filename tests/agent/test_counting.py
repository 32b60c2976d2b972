"""Numbers in sentences."""

import pytest

from agent.protocol.counting import counted


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 builds"),
        (1, "1 build"),
        (1.0, "1 build"),
        (2, "2 builds"),
        (0.5, "0.5 builds"),
        (1_500_000, "1500000 builds"),
    ],
)
def test_one_is_no_plural(number: float, said: str) -> None:
    assert counted(number, "build") == said
