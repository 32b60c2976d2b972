"""HTTP for what users name: connects to judged addresses only.

The name is resolved once per hop, every answer is judged, and the connection goes to one of
exactly those addresses; TLS and the Host header keep the name. Redirects start over. Neither
proxies nor credentials of the environment are used. The connection is made here, not by a library
that would resolve the name a second time.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
from typing import TYPE_CHECKING, Final, Self

import certifi
import psutil

from agent.errors import AddressRefused, FetchError, InsecureServer, NameUnknown
from agent.fetch.cancellation import Cancellation
from agent.fetch.url import Url, parse_url
from agent.protocol.addresses import BadEntry, is_public, refused_addresses
from agent.work.detached import Detached
from agent.work.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from agent.fetch.port import Limits, Request

    Resolver = Callable[[str, int], Sequence[str]]
    Connector = Callable[[socket.socket, tuple[str, int]], None]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CHUNK: Final = 64 * 1024
_POLL: Final = 0.05
# Of a name with more, the first few are tried.
_MOST_ADDRESSES: Final = 4


def resolve(host: str, port: int) -> Sequence[str]:
    """The name's addresses, in the system's order; raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def own_addresses() -> tuple[str, ...]:
    """Those of the interfaces that this process sees, in the form that `resolve` gives."""
    return tuple(
        _plain(entry.address)
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family in {socket.AF_INET, socket.AF_INET6}
    )


def connect(held: socket.socket, address: tuple[str, int]) -> None:
    held.connect(address)


class HttpFetcher:
    """`resolve`, `connect` and `own` (addresses of this machine, which count as private) can be
    given for tests. Safe for several threads: it keeps no connection."""

    def __init__(
        self,
        *,
        resolve: Resolver = resolve,
        connect: Connector = connect,
        own: Callable[[], Iterable[str]] = own_addresses,
    ) -> None:
        self._resolve = resolve
        self._connect = connect
        self._own = own

    def open(self, request: Request, cancellation: Cancellation | None = None) -> HttpAnswer:
        if request.authorization and not request.verify_tls:
            raise ValueError("A credential goes to a verified server only.")
        url = parse_url(request.url)
        watch = _Watch(request.limits, cancellation)
        try:
            return self._followed(request, url, watch)
        except BaseException:
            watch.stop()
            raise

    def _followed(self, request: Request, url: Url, watch: _Watch) -> HttpAnswer:
        authorization = request.authorization
        for _ in range(request.limits.redirects + 1):
            answer = self._exchange(request, url, authorization, watch)
            location = answer.headers.get("location", "")
            is_redirect = answer.status in _REDIRECTS and location
            if not is_redirect or request.method not in {"GET", "HEAD"}:
                return answer
            answer.leave()
            new = url.redirected(location)
            if new.origin != url.origin:
                authorization = ""
            url = new
        raise FetchError(f"{request.url[:200]} redirects more than {request.limits.redirects} ×.")

    def _exchange(
        self, request: Request, url: Url, authorization: str, watch: _Watch
    ) -> HttpAnswer:
        addresses = self._judged(request, url, watch)
        held = self._connected(request, url, addresses, watch)
        try:
            connection = _OneConnection(held)
            connection.putrequest(
                request.method, url.target, skip_host=True, skip_accept_encoding=True
            )
            headers = {
                **request.headers,
                "Host": url.netloc,
                # Nothing is unpacked here: the limit counts what is read.
                "Accept-Encoding": "identity",
                "Connection": "close",
            }
            if request.body or request.method == "POST":
                headers["Content-Length"] = str(len(request.body))
            if authorization:
                headers["Authorization"] = authorization
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(request.body or None)
            response = connection.getresponse()
        except (OSError, ValueError, http.client.HTTPException) as problem:
            watch.release(held)
            watch.check()
            raise FetchError(f"{url.netloc} did not answer properly: {_why(problem)}") from problem
        except BaseException:
            watch.release(held)
            raise
        watch.heard()
        return HttpAnswer(url, response, held, watch, request.limits)

    def _judged(self, request: Request, url: Url, watch: _Watch) -> Sequence[str]:
        found = tuple(_plain(text) for text in self._found(url, watch))
        if not found:
            raise NameUnknown(url.host)
        try:
            own = frozenset(self._own())
            refused = refused_addresses(request.allow, url.place, found, own=own)
        except BadEntry as problem:
            raise FetchError(
                f"The list of allowed places has a wrong entry: {problem}"
            ) from problem
        if refused:
            is_own = refused[0] in own and is_public(refused[0])
            raise AddressRefused(url.host, refused[0], is_own=is_own)
        return found

    def _found(self, url: Url, watch: _Watch) -> Sequence[str]:
        """A look-up cannot be cut: whoever waits for it can."""
        try:
            return (str(ipaddress.ip_address(url.host)),)
        except ValueError:
            pass
        looking = Detached(lambda: self._resolve(url.host, url.port), name="resolve")
        while not looking.wait(_POLL):
            watch.check()
        try:
            return looking.result()
        except OSError as problem:
            raise NameUnknown(url.host) from problem

    def _connected(
        self, request: Request, url: Url, addresses: Sequence[str], watch: _Watch
    ) -> socket.socket:
        problem: OSError | None = None
        for address in addresses[:_MOST_ADDRESSES]:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            held = socket.socket(family, socket.SOCK_STREAM)
            try:
                held.settimeout(request.limits.idle)
                watch.hold(held)
                self._connect(held, (address, url.port))
                watch.heard()
                if url.scheme == "https":
                    held = self._encrypted(request, url, held, watch)
            except ssl.SSLCertVerificationError as failed:
                watch.release(held)
                raise InsecureServer(f"{url.netloc} has no certificate that fits.") from failed
            except OSError as failed:
                watch.release(held)
                watch.check()
                problem = failed
            except BaseException:
                watch.release(held)
                raise
            else:
                return held
        raise FetchError(f"{url.netloc} cannot be reached: {_why(problem)}") from problem

    def _encrypted(
        self, request: Request, url: Url, held: socket.socket, watch: _Watch
    ) -> socket.socket:
        context = _context(verify=request.verify_tls)
        # The handshake is made on a socket that can be cut: wrapping takes the file over.
        wrapped = context.wrap_socket(
            held, server_hostname=url.host, do_handshake_on_connect=False
        )
        try:
            watch.hold(wrapped)
            wrapped.do_handshake()
        except BaseException:
            watch.release(wrapped)
            raise
        watch.heard()
        return wrapped


class HttpAnswer:
    """See `agent.fetch.port.Answer`."""

    def __init__(
        self,
        url: Url,
        response: http.client.HTTPResponse,
        held: socket.socket,
        watch: _Watch,
        limits: Limits,
    ) -> None:
        self._url = url
        self._response = response
        self._held = held
        self._watch = watch
        self._limits = limits

    @property
    def url(self) -> str:
        return str(self._url)

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        joined: dict[str, str] = {}
        for name, value in self._response.getheaders():
            key = name.lower()
            joined[key] = f"{joined[key]}, {value}" if key in joined else value
        return joined

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            while data := self._read():
                size += len(data)
                if size > self._limits.size:
                    raise FetchError(
                        f"{self._url.netloc} sent more than {self._limits.size} bytes."
                    )
                yield data
        finally:
            self.close()

    def _read(self) -> bytes:
        try:
            data = self._response.read1(_CHUNK)
        except (OSError, ValueError, http.client.HTTPException) as problem:
            self._watch.check()
            raise FetchError(f"{self._url.netloc} broke off: {_why(problem)}") from problem
        # A connection that was shut looks like the end.
        self._watch.check()
        self._watch.heard()
        if not data and self._response.length:
            raise FetchError(f"{self._url.netloc} broke off in the middle of its answer.")
        return data

    def leave(self) -> None:
        """Closes this connection only: the fetch goes on elsewhere."""
        self._response.close()
        self._watch.release(self._held)

    def close(self) -> None:
        self.leave()
        self._watch.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _OneConnection(http.client.HTTPConnection):
    """Speaks on a socket that is connected already, and opens none."""

    def __init__(self, held: socket.socket) -> None:
        super().__init__("unused.invalid")
        self.sock = held

    def connect(self) -> None:
        raise http.client.NotConnected


class _Watch:
    """Cancels the fetch when it takes too long as a whole, or says nothing for too long."""

    def __init__(self, limits: Limits, caller: Cancellation | None) -> None:
        self._limits = limits
        self._caller = caller
        self._cancellation = Cancellation()
        if caller is not None:
            self._cancellation.follow(caller)
        self._patience = Patience(total=limits.total, idle=limits.idle, on_end=self._late)
        self._patience.__enter__()

    def _late(self, kind: str) -> None:
        limits = self._limits
        self._cancellation.cancel(
            FetchError(f"It took longer than {limits.total:g} s.")
            if kind == "timeout"
            else FetchError(f"Nothing came for {limits.idle:g} s.")
        )

    def heard(self) -> None:
        self._patience.heard()

    def check(self) -> None:
        self._cancellation.check()

    def hold(self, held: socket.socket) -> None:
        self._cancellation.hold(held)

    def release(self, held: socket.socket) -> None:
        self._cancellation.drop(held)
        held.close()

    def stop(self) -> None:
        self._patience.__exit__(None, None, None)
        if self._caller is not None:
            self._cancellation.leave(self._caller)


def _context(*, verify: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        # nosemgrep: unchecked-certificate (a look that sends no secret and believes nothing)
        context.verify_mode = ssl.CERT_NONE
    elif not os.environ.get("SSL_CERT_FILE"):
        # A system without a list of its own has this one.
        context.load_verify_locations(certifi.where())
    return context


def _plain(address: str) -> str:
    """One spelling, without the zone."""
    return str(ipaddress.ip_address(address.partition("%")[0]))


def _why(problem: Exception | None) -> str:
    """What the system says, without the addresses that some texts hold."""
    if isinstance(problem, ssl.SSLError):
        return f"no secure connection ({problem.reason or 'TLS'})"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return type(problem).__name__
