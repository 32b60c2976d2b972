"""Wire types shared by server and agent; the only part of the agent that the server may import."""

from typing import Final

PROTOCOL_VERSION: Final = 1
