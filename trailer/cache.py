"""The cache in Redis that goes on in each process's own memory while Redis is away.

It holds counters of failed sign-ins and the like: without Redis they are counted per process,
which is less exact, and better than neither counting nor answering.
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


class SteadyRedisCache(RedisCache):
    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._own = LocMemCache("steady", {})

    def add(self, *args: Any, **kwargs: Any) -> Any:
        return self._try("add", args, kwargs)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._try("get", args, kwargs)

    def set(self, *args: Any, **kwargs: Any) -> Any:
        return self._try("set", args, kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self._try("delete", args, kwargs)

    def delete_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._try("delete_many", args, kwargs)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        try:
            return super().incr(key, delta, version)
        except RedisError as problem:
            self._away(problem)
            # The counter may have begun in Redis.
            self._own.add(key, 0, version=version)
            return self._own.incr(key, delta, version)

    def _try(self, verb: str, args: Any, kwargs: Any) -> Any:
        try:
            return getattr(super(), verb)(*args, **kwargs)
        except RedisError as problem:
            self._away(problem)
            return getattr(self._own, verb)(*args, **kwargs)

    def _away(self, problem: RedisError) -> None:
        logger.warning("redis is away, counting in this process", extra={"reason": str(problem)})
