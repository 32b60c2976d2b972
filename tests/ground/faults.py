"""What the Docker API proxy records of each call, and the faults it can be told to make."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Self
from urllib.parse import urlsplit

VERSION = re.compile(r"^/v\d+\.\d+(?=/)")
# Calls that change nothing although they are POSTs.
HARMLESS_POSTS = re.compile(
    r"^/(auth|session|grpc|containers/[^/]+/(wait|resize|attach)|exec/[^/]+/resize)$"
)
FIXED_WORDS = frozenset({"json", "create", "prune", "load", "get", "search"})


class Fault(Enum):
    """What happens to a call that a rule matches."""

    DELAY = "forwarded after some seconds"
    RESPOND = "answered by the proxy; the engine never sees it"
    HANG = "neither forwarded nor answered until the caller leaves or the proxy is reset"
    CUT = "the connection is closed; the engine never sees it"
    DROP_REPLY = "executed by the engine, but the connection is closed in place of the reply"
    CUT_STREAM = "forwarded, but the connection is closed after so many bytes of the reply's body"


class Moment(Enum):
    """Where in the life of a call a kill point lies."""

    BEFORE_FORWARD = "the engine has not seen the call"
    AFTER_EXECUTE = "the engine has executed it, the caller has not heard"
    AFTER_REPLY = "the caller has the whole reply"


@dataclass
class Call:
    """One call through the proxy."""

    number: int
    method: str
    path: str
    query: str
    template: str
    mutating: bool
    status: int | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.template}"

    @classmethod
    def of(cls, number: int, method: str, target: str) -> Self:
        """Describe a request by its first line."""
        address = urlsplit(target)
        path = VERSION.sub("", address.path)
        safe = method in ("GET", "HEAD") or HARMLESS_POSTS.match(path) is not None
        return cls(number, method, path, address.query, template_of(method, path), not safe)


@dataclass
class Rule:
    """A fault for the calls with this method and a path that the pattern matches in full."""

    method: str
    pattern: re.Pattern[str]
    fault: Fault
    times: int | None
    seconds: float = 0.0
    status: int = 0
    body: bytes = b""
    after_bytes: int = 0

    def applies(self, call: Call) -> bool:
        """Tell whether the rule takes this call, and count it."""
        if self.method not in ("*", call.method) or self.pattern.fullmatch(call.path) is None:
            return False
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0


@dataclass
class KillPoint:
    """A callback at a moment of the n-th mutating call from now on, of any kind or of one only."""

    remaining: int
    moment: Moment
    callback: Callable[[Call], object]
    cut: bool
    only: str = ""
    reached: list[Call] = field(default_factory=list)

    def counts_down_to(self, call: Call) -> bool:
        """Count a mutating call, and tell whether it is the one."""
        if call.mutating and not self.reached and self.only in ("", str(call)):
            self.remaining -= 1
            if self.remaining == 0:
                self.reached.append(call)
        return bool(self.reached) and self.reached[0] is call


def template_of(method: str, path: str) -> str:
    """Replace what names an object by {id}; image names may hold slashes.

    >>> template_of("POST", "/containers/ab12/start")
    '/containers/{id}/start'
    >>> template_of("GET", "/images/127.0.0.1:5000/team/app:1/json")
    '/images/{id}/json'
    """
    parts = path.strip("/").split("/")
    if parts[0] not in ("containers", "images", "networks", "volumes", "exec", "distribution"):
        return path
    if len(parts) < 2 or (len(parts) == 2 and parts[1] in FIXED_WORDS and method != "DELETE"):
        return path
    if parts[0] in ("images", "distribution"):
        verbs = ("json", "history", "push", "tag", "get")
        return f"/{parts[0]}/{{id}}" + (f"/{parts[-1]}" if parts[-1] in verbs else "")
    return "/".join(["", parts[0], "{id}", *parts[2:]])
