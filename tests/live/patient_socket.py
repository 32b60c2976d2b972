"""A browser's or an agent's socket to the application in this process, with time to spare.

The kit's own limits are a second each, which a machine with other work may take to sign somebody
in or to take leave; how long that takes is measured elsewhere.
"""

from __future__ import annotations

from typing import Any

from channels.testing import WebsocketCommunicator

_SECONDS = 15.0


class PatientSocket(WebsocketCommunicator):
    async def connect(self, timeout: float = _SECONDS) -> Any:  # noqa: ASYNC109  the kit's
        return await super().connect(timeout)

    async def disconnect(self, code: int = 1000, timeout: float = _SECONDS) -> None:  # noqa: ASYNC109
        await super().disconnect(code, timeout)
