"""Structured logs: constant message plus fields, with the request id of the work at hand.

Every line passes `_masked` last, with its exception as text: no secret is in a log.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

import structlog

from agent.protocol.redaction import LIVE, redacted_field

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

_SHARED = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


_REFUSED_LENGTH: Final = 300


def _masked(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> dict[str, Any]:
    return {name: redacted_field(name, value) for name, value in line.items()}


class OneLineForBadRequests(logging.Filter):
    """Django logs a request that nobody signed in for (a wrong Host, too many fields) as an error
    with a traceback, by which anybody could fill the log. Here it is one warning of bounded size.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.msg, record.args = record.getMessage()[:_REFUSED_LENGTH], None
            record.exc_info = record.exc_text = None
        return True


class OneLineForAFullDisk(logging.Filter):
    """Without room on its disk the database fails every request and every job. That is said once,
    by `trailer.storage`, and not again with a traceback by each of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        from trailer.storage import storage  # noqa: PLC0415 - needs the settings that this is for

        error = record.exc_info[1] if record.exc_info else None
        if error is not None and storage().is_cause_of(error):
            return False
        # Django's own line for each answer 503.
        is_answer = record.name == "django.request" and getattr(record, "status_code", 0) == 503
        return not (is_answer and storage().trouble())


def threads_end_in_the_log() -> None:
    """Python itself writes what a thread dies of past every filter."""

    def tell(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
            logging.getLogger(__name__).error("a thread ended", exc_info=ended.exc_value)

    threading.excepthook = tell


def logging_config(*, level: str, secrets: Iterable[str] = ()) -> dict[str, Any]:
    """`secrets`: those of the settings; those of the database are known when they are opened."""
    LIVE.remember(*secrets)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    _masked,
                    structlog.processors.LogfmtRenderer(
                        key_order=["timestamp", "level", "logger", "event"], bool_as_flag=False
                    ),
                ],
            }
        },
        "filters": {
            "bad_requests": {"()": OneLineForBadRequests},
            "full_disk": {"()": OneLineForAFullDisk},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "structured",
                "filters": ["bad_requests", "full_disk"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Has a handler of its own, which would write past the filter.
            "gunicorn.error": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "daphne": {"level": "WARNING"},
            "django.channels.server": {"level": "WARNING"},
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "amqp": {"level": "WARNING"},
        },
    }
