"""Counters of this process for Prometheus: requests answered and jobs done.

The numbers live as long as the process. Several processes of one machine are gathered when
PROMETHEUS_MULTIPROC_DIR names a folder that they share.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final

from celery import Task
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

OF_THIS_PROCESS: Final = CollectorRegistry()
_REQUESTS: Final = Counter(
    "trailer_http_requests",
    "Requests answered, by route.",
    ("method", "route", "status"),
    registry=OF_THIS_PROCESS,
)
_REQUEST_SECONDS: Final = Histogram(
    "trailer_http_request_seconds",
    "Time to answer.",
    ("method",),
    buckets=_SECONDS,
    registry=OF_THIS_PROCESS,
)
_JOBS: Final = Counter(
    "trailer_jobs", "Background jobs done.", ("job", "outcome"), registry=OF_THIS_PROCESS
)
_JOB_SECONDS: Final = Counter(
    "trailer_job_seconds", "Time in background jobs.", ("job",), registry=OF_THIS_PROCESS
)


def counters() -> CollectorRegistry:
    """Where the numbers to show are: of this process, or of all that share the folder."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return OF_THIS_PROCESS
    gathered = CollectorRegistry()
    MultiProcessCollector(gathered)  # type: ignore[no-untyped-call]
    return gathered


class CountingMiddleware:
    """Routes, not paths: an id in a label would make a series of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        response = self.get_response(request)
        method = request.method if request.method in _METHODS else "other"
        route = request.resolver_match.route if request.resolver_match else "none"
        _REQUESTS.labels(method, route, str(response.status_code)).inc()
        _REQUEST_SECONDS.labels(method).observe(time.perf_counter() - begun)
        return response


class CountedTask(Task):  # type: ignore[type-arg]
    """Every job of the product."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        outcome = "failed"
        try:
            answer = super().__call__(*arguments, **named)
            outcome = "done"
            return answer
        finally:
            _JOBS.labels(self.name, outcome).inc()
            _JOB_SECONDS.labels(self.name).inc(time.perf_counter() - begun)
