"""Error pages; addresses for programs answer in the API's shape instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core.exceptions import DisallowedHost
from django.shortcuts import render

from trailer.api.exceptions import page_failed, page_not_found, page_refused
from trailer.storage import storage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


# What programs call: they read the shape of the API's errors, not a page.
_FOR_PROGRAMS: Final = ("/api/", "/webhooks/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Neither a session nor the address may be asked for: that address may be what is wrong. The
    shape of the API's errors for everybody, since no page of ours leads here."""
    sentence = "The request can't be read. Correct it and send it again."
    if isinstance(exception, DisallowedHost):
        sentence = (
            "This server does not answer to the host name of this request. Use its public "
            "address, or have that name added to TRAILER_ALLOWED_HOSTS."
        )
    return page_refused(request, sentence)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path.startswith(_FOR_PROGRAMS):
        return page_not_found(request, exception)
    return render(request, "404.html", status=404)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "403.html", status=403)


def failed(request: HttpRequest) -> HttpResponse:
    """Needs neither database nor session: either may be what failed."""
    if request.path.startswith(_FOR_PROGRAMS):
        return page_failed(request)
    request_id = request.META.get("TRAILER_REQUEST_ID", "")
    full = storage().trouble()
    values = {"request_id": request_id, "full": full}
    return render(request, "500.html", values, status=503 if full else 500)
