"""What encrypting and signing costs a message through Redis; no engine needed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from channels_redis.core import RedisChannelLayer
from cryptography.fernet import Fernet

from tests.bench.table import Row
from tests.ground.redis import PrivateRedis
from trailer.redis_layer import SignedRedisChannelLayer

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 12
MESSAGES = 200
GOAL = 2.0
# A burst of a terminal, and the frames of a relayed port.
SIZES = {"4 KiB": 4096, "128 KiB": 128 * 1024}


def channel_rows() -> list[Row]:
    server = PrivateRedis().start()
    key = Fernet.generate_key().decode()
    makers: dict[str, Callable[[], Any]] = {
        "plain": lambda: RedisChannelLayer(hosts=[server.url], capacity=2000),
        "signed": lambda: SignedRedisChannelLayer(hosts=[server.url], capacity=2000, keys=[key]),
    }
    try:
        return [asyncio.run(_row(name, size, makers)) for name, size in SIZES.items()]
    finally:
        server.destroy()


async def _row(name: str, size: int, makers: dict[str, Callable[[], Any]]) -> Row:
    """The two take turns, and the least disturbed round of each counts."""
    layers = {kind: make() for kind, make in makers.items()}
    seconds: dict[str, list[float]] = {kind: [] for kind in layers}
    for _ in range(ROUNDS):
        for kind, layer in layers.items():
            seconds[kind].append(await _group_round(layer, size))
    for layer in layers.values():
        await layer.close_pools()
    plain, signed = (min(seconds[kind]) / MESSAGES * 1e6 for kind in ("plain", "signed"))
    detail = f"signed {signed:.0f} µs; plain {plain:.0f} µs a message"
    return Row(f"group_send and receive, {name}", signed / plain, "× plain", GOAL, detail)


async def _group_round(layer: Any, size: int) -> float:
    channel = await layer.new_channel()
    await layer.group_add("bench", channel)
    message = {"type": "session.message", "payload": b"x" * size}
    begun = time.perf_counter()
    for _ in range(MESSAGES):
        await layer.group_send("bench", message)
        await layer.receive(channel)
    taken = time.perf_counter() - begun
    await layer.group_discard("bench", channel)
    return taken
