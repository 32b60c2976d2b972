"""Celery inside the process: worker threads and beat on the in-memory broker."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from celery.beat import EmbeddedService
from celery.worker import WorkController
from django.conf import settings

from trailer.jobs import Job

if TYPE_CHECKING:
    from pathlib import Path

    from celery import Celery

logger = logging.getLogger(__name__)

_STOP_SECONDS = 5
# One more than stacks may take: a git server that hangs must not hold up everything else.
SPARE_THREADS = 1


class EmbeddedJobs:
    """WorkController rather than the command-line worker, which would take over the signals."""

    def __init__(self, app: Celery, *, data_dir: Path) -> None:
        self._app = app
        self._worker = WorkController(
            app=app,
            pool_cls="threads",
            concurrency=settings.TRAILER_STACK_PARALLEL + SPARE_THREADS,
            without_gossip=True,
        )
        # A thread here; the stubs also know the process that it could be.
        self._beat: Any = EmbeddedService(
            app, thread=True, schedule_filename=str(data_dir / "beat-schedule")
        )
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._beat.start()
        # Whatever happened while nobody looked.
        self._app.send_task(Job.CHECK_STACKS.value)

    def stop(self) -> None:
        """Nothing to do when the server never came up: beat would wait for its own start."""
        if not self._thread.is_alive():
            return
        self._beat.stop()
        self._worker.stop()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._worker.start()
        except Exception:
            logger.exception("background jobs ended")
