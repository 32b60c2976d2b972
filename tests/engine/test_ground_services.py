"""Proof that the tests' own PostgreSQL, Redis and waiting helper hold."""

import psycopg
import pytest
import redis

from tests.ground.postgres import PrivatePostgres
from tests.ground.redis import PrivateRedis
from tests.ground.wait import always, eventually


def test_postgres_keeps_what_is_written(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("create temporary table t (n int)")
        connection.execute("insert into t values (7)")
        assert connection.execute("select n from t").fetchone() == (7,)


def test_a_destroyed_postgres_is_gone() -> None:
    server = PrivatePostgres().start()
    server.destroy()
    assert not server.folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url, connect_timeout=2)


def test_redis_answers_again_after_a_restart(redis_server: PrivateRedis) -> None:
    client = redis.Redis.from_url(redis_server.url)
    assert client.set("k", "v")
    redis_server.stop()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    redis_server.start()
    assert client.get("k") is None
    client.close()


def test_eventually_returns_the_value_and_tells_why_it_gave_up() -> None:
    values = iter([0, 0, 5])
    assert eventually(lambda: next(values), timeout=5) == 5

    def never() -> bool:
        assert 1 + 1 == 3, "sums do not change"
        return True

    with pytest.raises(AssertionError, match="sums do not change"):
        eventually(never, timeout=0.1, message="the sum stays")


def test_always_fails_at_the_first_exception_to_the_rule() -> None:
    values = iter([True, True, False, True])
    with pytest.raises(AssertionError, match="it changed"):
        always(lambda: next(values), during=5, message="it changed", interval=0.01)
