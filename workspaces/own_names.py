"""The names of this very server, which no workspace may have."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings


def own_names() -> frozenset[str]:
    public = urlsplit(settings.TRAILER_PUBLIC_URL).hostname or ""
    return frozenset({public, *settings.ALLOWED_HOSTS})
