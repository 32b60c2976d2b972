"""The shared cache: counters in Redis, and nothing that a value could run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.cache.backends.redis import RedisSerializer

from trailer.accounts import attempts
from trailer.cache import SteadyRedisCache
from trailer.errors import Throttled


class Evil:
    """What whoever may write to Redis would leave there."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.fixture
def shared(redis_url: str) -> SteadyRedisCache:
    return SteadyRedisCache(redis_url, {})


def test_guesses_at_a_name_are_counted_over_all_processes(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def guess() -> bool:
        # Each has a connection of its own, as each web process has.
        monkeypatch.setattr(attempts, "cache", SteadyRedisCache(redis_url, {}))
        try:
            attempts.SpreadAttempts(f"olga of {redis_url}", lambda: False).count()
        except Throttled:
            return False
        return True

    passed = [guess() for _ in range(attempts.SPREAD_FREE + 10)]
    # A pause may end meanwhile on a slow machine; the next is longer.
    assert all(passed[: attempts.SPREAD_FREE + 1])
    assert not passed[-1]


def test_values_come_back_and_numbers_are_counted_by_redis(shared: SteadyRedisCache) -> None:
    for value in (1.5, "text", True, None, {"issuer": ["a", 1]}):
        shared.set("value", value)
        assert shared.get("value", "absent") == value
    assert shared.add("count", 0, timeout=9)
    assert not shared.add("count", 5, timeout=9)
    assert (shared.incr("count"), shared.incr("count"), shared.decr("count")) == (1, 2, 1)
    assert shared.get("count") == 1


def test_a_value_that_runs_code_is_not_even_read(
    shared: SteadyRedisCache, redis_url: str, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    body = pickle.dumps(Evil(mark))
    with redis.Redis.from_url(redis_url) as client:
        client.set(shared.make_key("evil"), body)
    assert shared.get("evil", "absent") == "absent"
    assert not mark.exists()
    # It would have: the same bytes run where Django's own way reads them.
    RedisSerializer().loads(body)
    assert mark.exists()
