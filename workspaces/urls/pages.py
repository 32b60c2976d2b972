"""What the server itself says on a workspace's host name: a page for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.template.loader import render_to_string

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workspaces.urls.headers import Header

_SOON_SECONDS: Final = 3


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""


def notice(
    status: int,
    title: str,
    sentence: str,
    *,
    as_page: bool,
    code: str = "unavailable",
    comes_soon: bool = False,
) -> Answer:
    """`comes_soon`: a browser asks again by itself."""
    headers: list[Header] = [(b"cache-control", b"no-store"), (b"x-trailer-relay", b"notice")]
    if as_page:
        public = settings.TRAILER_PUBLIC_URL
        context = {"title": title, "sentence": sentence, "status": status, "public": public}
        body = render_to_string("urls/notice.html", context).encode()
        headers.append((b"content-type", b"text/html; charset=utf-8"))
        policy = f"default-src 'none'; style-src {public}; font-src {public}; base-uri 'none'"
        headers.append((b"content-security-policy", policy.encode()))
        if comes_soon:
            headers.append((b"refresh", str(_SOON_SECONDS).encode()))
    else:
        body = json.dumps({"code": code, "message": sentence}).encode()
        headers.append((b"content-type", b"application/json"))
    if status == 503:
        headers.append((b"retry-after", str(_SOON_SECONDS).encode()))
    return Answer(status=status, headers=tuple(headers), body=body)


def redirect(address: str, *, cookies: Iterable[str] = ()) -> Answer:
    headers: list[Header] = [
        (b"location", address.encode("ascii")),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    ]
    headers += [(b"set-cookie", text.encode("ascii")) for text in cookies]
    return Answer(status=302, headers=tuple(headers))


async def send_answer(send: Any, answer: Answer, *, is_head: bool = False) -> None:
    length = str(len(answer.body)).encode()
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [*answer.headers, (b"content-length", length)],
        }
    )
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
