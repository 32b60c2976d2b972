"""The digest behind the name in TRAILER_AGENT_IMAGE, asked of its registry.

Whoever can write a tag is root on the hosts that are enrolled by it. A digest in the line narrows
that to the moment at which the line was made. The setting is the operator's, so its registry may
be anywhere; nothing secret is sent there, and no redirect is followed.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import requests
from django.core.cache import caches

from agent.protocol import image_refs
from agent.protocol.naming import is_local_name

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

_TIMEOUT: Final = (3.0, 5.0)
_KEPT_SECONDS: Final = 60
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PARAMETER: Final = re.compile(r'(realm|service)="([^"]*)"')
_MANIFESTS: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


@dataclass(frozen=True)
class Pinned:
    """`is_local`: nobody may be asked for the image but the host's own engine."""

    image: str
    problem: str = ""
    is_local: bool = False


class _Unknown(Exception):
    """Why the registry did not say what the name means."""


def pinned_image(image: str) -> Pinned:
    """The image by its digest; as it is, with a sentence, where that could not be found out."""
    if is_local_name(image) or image_refs.engine_id(image):
        return Pinned(image, is_local=True)
    ref = image_refs.find(image)
    if ref is None:
        return Pinned(image, f"TRAILER_AGENT_IMAGE is no image's name: {image}", is_local=True)
    if not image_refs.names_registry(image):
        return Pinned(
            image,
            f"TRAILER_AGENT_IMAGE names no registry, so the line runs {image} only where the "
            f"machine has it already. To have it pulled from Docker Hub, set docker.io/{image}.",
            is_local=True,
        )
    if ref.digest:
        return Pinned(image)
    try:
        digest = _kept_digest(ref)
    except _Unknown as reason:
        return Pinned(
            image,
            f"The line names {image} without a digest: {reason} Whoever can write this tag is "
            "root on the machine. Set TRAILER_AGENT_IMAGE to name@sha256:….",
        )
    return Pinned(f"{ref.full_name}@{digest}")


def _kept_digest(ref: image_refs.Reference) -> str:
    tag = ref.tag or "latest"
    cache, key = caches["process"], f"agent-image:{ref.full_name}:{tag}"
    digest: str | None = cache.get(key)
    if digest is None:
        digest = _digest(image_refs.api_server(ref.server), ref.path, tag)
        cache.set(key, digest, _KEPT_SECONDS)
    return digest


def _digest(server: str, name: str, tag: str) -> str:
    scheme = "http" if urlsplit(f"//{server}").hostname in {"localhost", "127.0.0.1"} else "https"
    url = f"{scheme}://{server}/v2/{name}/manifests/{tag}"
    headers = {"Accept": _MANIFESTS}
    with requests.Session() as session:
        # A netrc entry of the user who runs the server goes nowhere.
        session.trust_env = False
        try:
            answer = _head(session, url, headers)
            if answer.status_code == 401:
                token = _anonymous_token(session, answer.headers, name, scheme)
                answer = _head(session, url, {**headers, "Authorization": f"Bearer {token}"})
        except (requests.RequestException, ValueError) as problem:
            logger.info("no digest of the agent's image", exc_info=problem)
            raise _Unknown(f"{server} could not be asked from this server.") from None
    digest = answer.headers.get("Docker-Content-Digest", "")
    if answer.status_code == 200 and _DIGEST.fullmatch(digest):
        return digest
    raise _Unknown(f"{server} answered {answer.status_code} to the question for its digest.")


def _head(session: requests.Session, url: str, headers: Mapping[str, str]) -> requests.Response:
    return session.head(url, headers=dict(headers), timeout=_TIMEOUT, allow_redirects=False)


def _anonymous_token(
    session: requests.Session, headers: Mapping[str, str], name: str, scheme: str
) -> str:
    """Public registries hand a token to anybody; a private one's answer is no reason to send it
    a password from here."""
    wanted = headers.get("WWW-Authenticate", "")
    given = dict(_PARAMETER.findall(wanted))
    realm = given.get("realm", "")
    if not wanted.startswith("Bearer ") or urlsplit(realm).scheme != scheme:
        raise _Unknown("its registry wants a password.")
    answer = session.get(
        realm,
        params={"service": given.get("service", ""), "scope": f"repository:{name}:pull"},
        timeout=_TIMEOUT,
        allow_redirects=False,
    )
    if answer.status_code != 200:
        raise _Unknown("its registry wants a password.")
    body = answer.json()
    return str(body.get("token") or body.get("access_token") or "")
