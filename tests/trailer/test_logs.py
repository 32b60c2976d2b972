"""The server's log lines, as they are written: readable, and without a secret."""

from __future__ import annotations

import io
import logging
import logging.config
import threading
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.test import RequestFactory

from tests.factories import make_registry
from trailer.logs import logging_config, threads_end_in_the_log
from trailer.sealed import unseal

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = 'canary "in quotes" 5f'
TOKEN = "trl_api_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger of its own with the product's formatter."""
    config = logging_config(level="DEBUG")
    formatter = logging.config.DictConfigurator(config).configure_formatter(
        config["formatters"]["structured"]
    )
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("trailer.logs")
    logger.addHandler(handler)
    yield logger, stream
    logger.removeHandler(handler)


@pytest.mark.django_db
def test_a_secret_that_was_opened_is_in_no_line(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    registry = make_registry(password=SECRET)
    logger.warning(
        "pull failed", extra={"reason": f"denied for {unseal(registry, 'password_token')}"}
    )
    try:
        raise ValueError(SECRET, {"password": SECRET})
    except ValueError:
        logger.exception("it broke", extra={"detail": [SECRET], "host": "north"})
    written = stream.getvalue()
    assert "canary" not in written
    assert 'reason="denied for •••"' in written
    assert "host=north" in written
    assert "ValueError" in written


def test_keys_tokens_and_addresses_of_the_settings_are_in_no_line(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = log
    request = RequestFactory().get(
        f"/api/v1/x/?token={TOKEN}", HTTP_AUTHORIZATION=f"Token {TOKEN}"
    )
    logger.error("Bad Request: %s", request.get_full_path(), extra={"request": request})
    logger.info("key %s, %s", settings.SECRET_KEY, settings.TRAILER_SECRET_KEYS[0])
    written = stream.getvalue()
    assert "token=•••" in written
    for secret in (TOKEN, settings.SECRET_KEY, settings.TRAILER_SECRET_KEYS[0]):
        assert secret not in written


def test_what_a_thread_dies_of_is_a_line_like_others(
    log: tuple[logging.Logger, io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    threads_end_in_the_log()

    def die() -> None:
        raise RuntimeError(f"refused: {TOKEN}")

    thread = threading.Thread(target=die)
    thread.start()
    thread.join()
    assert "refused: trl_api_•••" in log[1].getvalue()
