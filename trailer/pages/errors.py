"""Error pages; addresses for programs answer in the API's shape instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.shortcuts import render

from trailer.api.exceptions import page_failed, page_not_found

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


# What programs call: they read the shape of the API's errors, not a page.
_FOR_PROGRAMS: Final = ("/api/", "/webhooks/")


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
    return render(request, "500.html", {"request_id": request_id}, status=500)
