"""The agent's version, sent with every session and heartbeat."""

from typing import Final

VERSION: Final = "0.1.0"
