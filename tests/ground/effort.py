"""How much an act costs in lines of Python that run: the same on an idle and on a busy machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(act: Callable[[], object]) -> int:
    """Every pass through a line counts, also each turn of a loop within one line. What a call into
    C does is one."""
    count = 0

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
