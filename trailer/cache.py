"""The cache in Redis that goes on in each process's own memory while Redis is away.

It holds counters of failed sign-ins and the like: without Redis they are counted per process,
which is less exact, and better than neither counting nor answering. Values are JSON: Django's own
way is pickle, with which whoever may write to Redis would run code in the server.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


class JsonSerializer:
    def dumps(self, value: Any) -> int | str:
        # Whole numbers stay bare, so that Redis itself can count.
        return value if type(value) is int else json.dumps(value)

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


class SteadyRedisCache(RedisCache):
    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        options = {**params.get("OPTIONS", {}), "serializer": JsonSerializer}
        super().__init__(server, {**params, "OPTIONS": options})
        self._own = LocMemCache("steady", {"OPTIONS": {"MAX_ENTRIES": 50_000}})

    def add(self, *args: Any, **kwargs: Any) -> Any:
        return self._try("add", args, kwargs)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        try:
            return self._try("get", (key, default, version), {})
        except (ValueError, RecursionError):
            # Not written by us, or by an older version.
            return default

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
