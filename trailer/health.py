"""Liveness and readiness for load balancers and scripts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection
from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from trailer.events import channel_layer
from trailer.storage import storage

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    troubles = (_database_trouble(), storage().trouble(), _layer_trouble())
    reasons = [reason for reason in troubles if reason]
    if reasons:
        return JsonResponse({"status": "not_ready", "reasons": reasons}, status=503)
    return JsonResponse({"status": "ok", "reasons": []})


def _database_trouble() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except DatabaseError as error:
        return f"The database does not answer: {error}"
    return ""


def _layer_trouble() -> str:
    try:
        async_to_sync(_echo)()
    except Exception as error:  # noqa: BLE001 - whatever the layer's client raises
        return f"The channel layer does not answer: {error or type(error).__name__}"
    return ""


async def _echo() -> None:
    async with asyncio.timeout(3):
        await channel_layer().group_send("readyz", {"type": "ready"})
