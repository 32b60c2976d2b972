"""How often one token may ask, where the operator set a limit (`TRAILER_API_RATE`).

Off by default: standalone Trailer answers about 150 small requests a second. A limit that leaves
scripts alone would never be reached, and one that is reached would hurt them.
"""

from __future__ import annotations

import time
from typing import Final

from django.conf import settings

from agent.protocol import counting
from trailer.accounts.attempts import counted
from trailer.errors import Throttled

# Counted over so many seconds: a burst passes, a flood does not.
_WINDOW: Final = 10


def rate_check(token: str) -> None:
    """In the shared cache, so that the limit holds over all web processes."""
    if not settings.TRAILER_API_RATE:
        return
    window, passed = divmod(time.time(), _WINDOW)
    asked = counted(f"rate:{token}:{int(window)}", 2 * _WINDOW)
    if asked > settings.TRAILER_API_RATE * _WINDOW:
        wait = int(_WINDOW - passed) + 1
        most = counting.counted(settings.TRAILER_API_RATE, "time")
        raise Throttled(
            f"This token asks more than {most} a second. "
            f"Try again in {counting.counted(wait, 'second')}.",
            retry_after=wait,
        )
