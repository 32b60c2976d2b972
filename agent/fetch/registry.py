"""Asks a registry what an engine will ask it, from judged addresses only, before the engine does.

    /v2/ -> token realm -> manifest -> its first blob; each of them with its redirects

The agent sends no credential of the user: a realm is asked for an anonymous token. A registry that
does not answer is left to the engine, which says better why; its address was judged all the same.
What the engine resolves and asks a second time is not seen here: a registry that answers the
engine otherwise than the agent gets past this, and so does a name that moves in between.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec

from agent import clock
from agent.errors import (
    AddressRefused,
    BadAddress,
    FetchCancelled,
    FetchError,
    InsecureServer,
    NameUnknown,
    RegistryRefused,
)
from agent.fetch.port import Limits, Request, body_of
from agent.protocol import image_refs
from agent.protocol.addresses import BadHost
from agent.protocol.registries import HOW_TO_ALLOW, host_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.fetch.cancellation import Cancellation
    from agent.fetch.port import Answer, Fetcher
    from agent.protocol.registries import RegistryRule

log = logging.getLogger(__name__)

# Engines follow ten redirects as well.
# Seconds for all questions to one registry: some wait for it, and others wait for them.
_PATIENCE: Final = 30.0
_MOST_REALMS: Final = 4
_LIMITS: Final = Limits(total=15.0, idle=5.0, size=4 * 1024 * 1024, redirects=10)
_ACCEPT: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_PARAMETER: Final = re.compile(r'([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))', re.IGNORECASE)
_DIGEST: Final = re.compile(r"[a-z0-9]{1,20}:[0-9a-f]{32,128}")
# Of an index only the first image is followed, and never an index in an index.
_MANIFESTS_DEEP: Final = 2


class _Described(msgspec.Struct, frozen=True):
    digest: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    config: _Described = _Described()
    manifests: tuple[_Described, ...] = ()


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


class RegistryCheck(Protocol):
    def server(
        self, server: str, rule: RegistryRule | None, cancellation: Cancellation | None = None
    ) -> None:
        """Raises RegistryRefused unless an engine may sign in there; without a rule it may."""
        ...

    def reference(
        self,
        ref: str,
        rule: RegistryRule | None,
        cancellation: Cancellation | None = None,
        *,
        blobs: bool = True,
    ) -> None:
        """Raises RegistryRefused unless an engine may ask for this image; without a rule it may.
        Without `blobs` the engine will ask for no more than its digest. Raises FetchCancelled."""
        ...


class RegistryGate:
    """See RegistryCheck."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def server(
        self, server: str, rule: RegistryRule | None, cancellation: Cancellation | None = None
    ) -> None:
        self._check(server, None, rule, cancellation)

    def reference(
        self,
        ref: str,
        rule: RegistryRule | None,
        cancellation: Cancellation | None = None,
        *,
        blobs: bool = True,
    ) -> None:
        if rule is None:
            return
        found = image_refs.find(ref)
        if found is None:
            raise RegistryRefused(f"{ref[:200]} is not the reference of an image.")
        wanted = found.digest or found.tag or "latest"
        self._check(found.server, _Wanted(found.path, wanted, blobs), rule, cancellation)

    def _check(
        self,
        server: str,
        wanted: _Wanted | None,
        rule: RegistryRule | None,
        cancellation: Cancellation | None,
    ) -> None:
        if rule is None:
            return
        if refusal := rule.problem(server):
            raise RegistryRefused(refusal)
        if rule.trusts(server):
            return
        until = clock.monotonic() + _PATIENCE
        # As an engine does where it takes the registry for insecure.
        for scheme in ("https", "http"):
            base = f"{scheme}://{server}"
            visit = _Visit(self._fetcher, base, wanted, rule, cancellation, until=until)
            try:
                visit.ask()
            except (AddressRefused, BadAddress, NameUnknown) as problem:
                raise RegistryRefused(_sentence(server, problem)) from problem
            except FetchCancelled:
                raise
            except FetchError as problem:
                log.info("the registry %s was not asked over %s: %s", server, scheme, problem)
            else:
                return


@dataclass(frozen=True)
class _Wanted:
    path: str
    # A tag or a digest.
    version: str
    blobs: bool


class _Visit:
    """One registry over one scheme."""

    def __init__(
        self,
        fetcher: Fetcher,
        base: str,
        wanted: _Wanted | None,
        rule: RegistryRule,
        cancellation: Cancellation | None,
        *,
        until: float,
    ) -> None:
        self._until = until
        self._fetcher = fetcher
        self._base = base
        self._wanted = wanted
        self._rule = rule
        self._cancellation = cancellation
        self._token = ""
        self._asked: set[str] = set()

    def ask(self) -> None:
        """Raises what the fetcher raises for the registry itself."""
        with self._open(f"{self._base}/v2/") as answer:
            challenge = answer.headers.get("www-authenticate", "")
        self._take_token(challenge)
        if self._wanted is not None:
            self._ask_for_image(self._wanted)

    def _ask_for_image(self, wanted: _Wanted) -> None:
        repository = f"{self._base}/v2/{quote(wanted.path)}"
        version = wanted.version
        for _ in range(_MANIFESTS_DEEP):
            body = self._body(f"{repository}/manifests/{quote(version, safe=':')}")
            manifest = _manifest(body)
            if not wanted.blobs:
                return
            if _DIGEST.fullmatch(manifest.config.digest):
                self._body(f"{repository}/blobs/{manifest.config.digest}", read=False)
                return
            version = next((each.digest for each in manifest.manifests), "")
            if not _DIGEST.fullmatch(version):
                return

    def _body(self, url: str, *, read: bool = True) -> bytes:
        """Of a good answer; a registry that wants a token here is asked again with one."""
        for _ in range(2):
            with self._open(url, token=self._token) as answer:
                if answer.status != 401:
                    return body_of(answer) if read and answer.status == 200 else b""
                challenge = answer.headers.get("www-authenticate", "")
            if not self._take_token(challenge):
                break
        return b""

    def _take_token(self, challenge: str) -> bool:
        """True if there is a new one."""
        token = self._anonymous_token(challenge)
        self._token = token or self._token
        return bool(token)

    def _anonymous_token(self, challenge: str) -> str:
        """Every realm is asked, whichever of them the engine would choose."""
        found = ""
        path = self._wanted.path if self._wanted else ""
        for url in _realms(challenge, path):
            if url in self._asked:
                continue
            if len(self._asked) >= _MOST_REALMS:
                raise BadAddress(f"It names more than {_MOST_REALMS} places that give tokens.")
            self._asked.add(url)
            try:
                with self._open(url) as answer:
                    body = body_of(answer) if answer.status == 200 else b""
                token = msgspec.json.decode(body, type=_Token)
            except (AddressRefused, BadAddress, NameUnknown, FetchCancelled):
                raise
            except (FetchError, msgspec.MsgspecError) as problem:
                log.info("the realm of %s gave no token: %s", self._base, problem)
            else:
                found = found or token.token or token.access_token
        return found

    def _open(self, url: str, *, token: str = "") -> Answer:
        left = self._until - clock.monotonic()
        if left <= 0:
            raise FetchError(f"The questions took longer than {_PATIENCE:g} s.")
        request = Request(
            url=url,
            headers={"Accept": _ACCEPT, "User-Agent": "trailer-agent"},
            authorization=f"Bearer {token}" if token and token.isprintable() else "",
            allow=self._rule.allow,
            limits=replace(_LIMITS, total=min(_LIMITS.total, left)),
        )
        try:
            return self._fetcher.open(request, self._cancellation)
        except InsecureServer:
            # The engine may know an authority that this process does not: only where it leads to
            # matters here, and nothing is sent to it.
            blind = replace(request, authorization="", verify_tls=False)
            return self._fetcher.open(blind, self._cancellation)


def _manifest(body: bytes) -> _Manifest:
    try:
        return msgspec.json.decode(body, type=_Manifest)
    except msgspec.MsgspecError:
        return _Manifest()


def _realms(challenge: str, path: str) -> Iterator[str]:
    """The URLs that an engine would ask for a token, as it reads them."""
    parameters = [
        (name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
        for name, quoted, plain in _PARAMETER.findall(challenge)
    ]
    service = next((value for name, value in parameters if name == "service"), "")
    wanted = {"service": service} if service else {}
    if path:
        wanted["scope"] = f"repository:{path}:pull"
    for name, value in parameters:
        # The realm of a password is a title.
        if name == "realm" and "://" in value:
            joint = "&" if "?" in value else "?"
            yield f"{value}{joint}{urlencode(wanted)}" if wanted else value


def _sentence(server: str, problem: FetchError) -> str:
    try:
        own = host_of(server)
    except BadHost:
        own = server
    match problem:
        case AddressRefused(host=host, address=address) if host == own != address:
            what = f"The registry {server} leads to {address}, which is {problem.what}."
        case AddressRefused(host=host) if host == own:
            what = f"The registry {server} is {problem.what}."
        case AddressRefused(host=host, address=address):
            where = host if host == address else f"{host} ({address})"
            what = (
                f"The registry {server} sends those who ask it to {where}, "
                f"which is {problem.what}."
            )
        case NameUnknown(host=host):
            what = (
                f"The registry {server} was not asked: the name {host} can't be resolved on this "
                "host, so nobody can say where it leads."
            )
        case _:
            what = f"The registry {server} sends those who ask it elsewhere. {problem}"
    return f"{what} {HOW_TO_ALLOW}"
