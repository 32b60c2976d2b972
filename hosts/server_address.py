"""The address at which a host's agent finds this server, and what can be said of it beforehand."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import requests
from django.conf import settings
from django.http.request import validate_host

from agent.protocol.addresses import BadHost, host_name, is_public
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIELD: Final = "server_url"
_LONGEST: Final = 255
_TIMEOUT: Final = (3.0, 4.0)
_EXAMPLE: Final = "Write it like https://trailer.example.org or http://10.0.0.5:8000."
_NO_ADDRESS: Final = f"This is no address of a server. {_EXAMPLE}"


def read_server_url(text: str) -> str:
    """In its normal form; raises Invalid unless it is the address of a server, without a path."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise Invalid.field(_FIELD, _NO_ADDRESS) from None
    surplus = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    # Line breaks within are none to urlsplit.
    surplus = surplus or not text.isprintable() or len(text) > _LONGEST
    if parts.scheme not in ("http", "https") or surplus or port == 0:
        raise Invalid.field(_FIELD, _NO_ADDRESS)
    try:
        host = host_name(parts.hostname or "")
    except BadHost as problem:
        raise Invalid.field(_FIELD, f"{problem} {_EXAMPLE}") from None
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}"


def address_warning(url: str, *, bind: str, allowed_hosts: Sequence[str]) -> str:
    """Why an agent on another machine would not get through; empty when nothing is known. Nobody
    is asked for it."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if _is_this_machine(host):
        return (
            f"{url} leads an agent on another machine to that machine itself. Enter the address "
            f"at which the machine reaches this server.{_listening_advice(bind)}"
        )
    if not validate_host(_in_header(parts), list(allowed_hosts)):
        return (
            f"This server answers no request for {host}. Add it to TRAILER_ALLOWED_HOSTS, or set "
            "TRAILER_PUBLIC_URL to this address, and start the server again."
        )
    if parts.scheme == "http" and _is_public_address(host):
        return (
            f"{host} is an address of the internet, and agents send their token there over "
            "https only. Give this server a name and a certificate."
        )
    return ""


def own_address_warning(url: str) -> str:
    return address_warning(url, bind=settings.TRAILER_BIND, allowed_hosts=settings.ALLOWED_HOSTS)


def reach(url: str, token: str) -> str:
    """Ask at that address what the line will ask there, with the same token; why that did not
    work, or empty. Another server than this one does not know the token."""
    with requests.Session() as session:
        # A netrc entry of the user who runs the server goes nowhere.
        session.trust_env = False
        try:
            answer = session.get(
                f"{url}/api/agent/v1/images",
                headers={"Authorization": f"Bearer {token}"},
                timeout=_TIMEOUT,
                allow_redirects=False,
                stream=True,
            )
        except requests.exceptions.SSLError:
            return (
                f"{url} has a certificate that this machine does not trust. The host's agent must "
                "be given its authority: docs/install.md says how."
            )
        except (requests.RequestException, ValueError) as problem:
            return (
                f"Nothing answers at {url}, as this server sees it ({type(problem).__name__}). "
                f"It listens at {settings.TRAILER_BIND} itself."
            )
        answer.close()
    if answer.status_code == 200:
        return ""
    return f"{url} is not this server: it answers {answer.status_code} to the token of the line."


def _listening_advice(bind: str) -> str:
    host = urlsplit(f"//{bind}").hostname or ""
    if not _is_this_machine(host) or _is_any(host):
        return ""
    port = bind.rpartition(":")[2]
    return (
        f" This server listens at {bind}: unless a proxy stands before it, set TRAILER_BIND to "
        f"0.0.0.0:{port} and TRAILER_PUBLIC_URL to that address, and start it again."
    )


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _in_header(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _is_public_address(host: str) -> bool:
    try:
        return is_public(host)
    except ValueError:
        # A name: only the host knows where it leads.
        return False
