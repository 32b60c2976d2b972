"""Checks of ports, mounts, URLs, GPUs and health checks."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from agent.protocol.spec import HealthCheckSpec, PortSpec, UrlSpec
from trailer.errors import Invalid
from trailer.validation import check_one_line
from workspaces.choices import PortProtocol, UrlAuth
from workspaces.fields import MountFields
from workspaces.gpus import GpuWish
from workspaces.validation.scalars import (
    boolean,
    choice,
    entries,
    identifier,
    integer,
    number,
    record,
    required,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAX_PORT: Final = 65535
_MAX_GPUS: Final = 1024
_DAY: Final = 86_400
_ALL_ADDRESSES: Final = frozenset({"", "::"})


def clean_ports(value: Any, path: str) -> tuple[PortSpec, ...]:
    ports = tuple(_port(item, f"{path}.{n}") for n, item in enumerate(entries(value, path)))
    for n, port in enumerate(ports):
        if any(port_overlaps(port, other) for other in ports[:n]):
            raise Invalid.field(
                f"{path}.{n}", f"{port_text(port)} is listed twice, or clashes with another entry."
            )
    return ports


def port_overlaps(one: PortSpec, other: PortSpec) -> bool:
    """Whether both would need the same socket of the host, or say the same thing twice."""
    if one.protocol != other.protocol or one.host_port != other.host_port:
        return False
    if one.host_port is None and one.container_port != other.container_port:
        return False
    return _addresses_overlap(one.host_ip, other.host_ip)


def port_text(port: PortSpec) -> str:
    if port.host_port is None:
        return f"Container port {port.container_port}/{port.protocol}"
    return f"Host port {port.host_port}/{port.protocol}"


def _addresses_overlap(one: str, other: str) -> bool:
    if one == other or one in _ALL_ADDRESSES or other in _ALL_ADDRESSES:
        return True
    return (one == "0.0.0.0" and ":" not in other) or (other == "0.0.0.0" and ":" not in one)  # noqa: S104


def _port(value: Any, path: str) -> PortSpec:
    given = record(value, path, known=("container_port", "protocol", "host_port", "host_ip"))
    host_port = given.get("host_port")
    return PortSpec(
        container_port=integer(
            required(given, "container_port", path),
            f"{path}.container_port",
            least=1,
            most=_MAX_PORT,
        ),
        protocol=choice(given.get("protocol", "tcp"), f"{path}.protocol", PortProtocol.values),
        host_port=None
        if host_port is None
        else integer(host_port, f"{path}.host_port", least=1, most=_MAX_PORT),
        host_ip=_address(given.get("host_ip", ""), f"{path}.host_ip"),
    )


def _address(value: Any, path: str) -> str:
    address = text(value, path, max_length=45)
    if not address:
        return ""
    try:
        # A scope (%eth0) names an interface of one machine; the engine does not take it.
        parsed = ipaddress.ip_address(address if "%" not in address else "")
    except ValueError as error:
        raise Invalid.field(
            path, f"{path} must be an IP address of the host, or empty for all."
        ) from error
    return str(parsed)


def clean_mounts(value: Any, path: str) -> tuple[MountFields, ...]:
    mounts = tuple(_mount(item, f"{path}.{n}") for n, item in enumerate(entries(value, path)))
    twice = _first_repeated(mount.target for mount in mounts)
    if twice is not None:
        raise Invalid.field(path, f"The mount target {twice} is listed twice.")
    return mounts


def _mount(value: Any, path: str) -> MountFields:
    given = record(value, path, known=("volume", "target", "read_only"))
    return MountFields(
        volume_id=identifier(required(given, "volume", path), f"{path}.volume"),
        target=_target(required(given, "target", path), f"{path}.target"),
        read_only=boolean(given.get("read_only", False), f"{path}.read_only"),
    )


def _target(value: Any, path: str) -> str:
    target = text(value, path, max_length=1024)
    if not target.startswith("/"):
        raise Invalid.field(path, f"{path} must be an absolute path, for example /data.")
    if ".." in target.split("/"):
        raise Invalid.field(path, f"{path} may not contain '..'.")
    check_one_line(target, field=path, noun="A mount's path in the container")
    clean = "/" + posixpath.normpath(target).lstrip("/")
    if clean == "/":
        raise Invalid.field(path, f"{path} may not be the root folder of the container.")
    return clean


def clean_urls(value: Any, path: str) -> tuple[UrlSpec, ...]:
    urls = tuple(_url(item, f"{path}.{n}") for n, item in enumerate(entries(value, path)))
    twice = _first_repeated(f"{url.subdomain}.{url.domain}" for url in urls)
    if twice is not None:
        raise Invalid.field(path, f"The address {twice} is listed twice.")
    return urls


def _url(value: Any, path: str) -> UrlSpec:
    given = record(value, path, known=("subdomain", "domain", "port", "tls", "auth"))
    subdomain = text(required(given, "subdomain", path), f"{path}.subdomain", max_length=63)
    domain = text(required(given, "domain", path), f"{path}.domain", max_length=253)
    subdomain, domain = subdomain.lower(), domain.lower()
    if not _DNS_LABEL.fullmatch(subdomain):
        raise Invalid.field(
            f"{path}.subdomain",
            f"{path}.subdomain must be one DNS label: a-z, 0-9 and inner hyphens.",
        )
    if not all(_DNS_LABEL.fullmatch(label) for label in domain.split(".")):
        raise Invalid.field(
            f"{path}.domain", f"{path}.domain must be a DNS name, for example example.com."
        )
    if len(subdomain) + 1 + len(domain) > 253:
        raise Invalid.field(f"{path}.domain", f"{path} is longer than a DNS name may be (253).")
    return UrlSpec(
        subdomain=subdomain,
        domain=domain,
        port=integer(required(given, "port", path), f"{path}.port", least=1, most=_MAX_PORT),
        tls=boolean(given.get("tls", False), f"{path}.tls"),
        auth=choice(given.get("auth", UrlAuth.USERS.value), f"{path}.auth", UrlAuth.values),
    )


def clean_gpus(value: Any, path: str) -> GpuWish | None:
    if value is None:
        return None
    given = record(value, path, known=("count", "device_ids", "shared"))
    count = integer(given.get("count", 0), f"{path}.count", least=0, most=_MAX_GPUS)
    wanted = entries(given.get("device_ids", []), f"{path}.device_ids")
    device_ids = [
        text(item, f"{path}.device_ids.{n}", max_length=128) for n, item in enumerate(wanted)
    ]
    if not all(device_ids):
        raise Invalid.field(f"{path}.device_ids", "A GPU's device id may not be empty.")
    if count and device_ids:
        raise Invalid.field(path, "Ask for GPUs by count or by device_ids, not both.")
    if not count and not device_ids:
        return None
    return GpuWish(
        count=count,
        device_ids=tuple(sorted(set(device_ids))),
        shared=boolean(given.get("shared", False), f"{path}.shared"),
    )


def clean_health_check(value: Any, path: str) -> HealthCheckSpec | None:
    if value is None or value == {}:
        return None
    given = record(value, path, known=("test", "interval", "timeout", "retries", "start_period"))
    return HealthCheckSpec(
        test=_test(required(given, "test", path), f"{path}.test"),
        interval=number(given.get("interval", 30), f"{path}.interval", least=0.001, most=_DAY),
        timeout=number(given.get("timeout", 30), f"{path}.timeout", least=0.001, most=_DAY),
        retries=integer(given.get("retries", 3), f"{path}.retries", least=1, most=1000),
        start_period=number(
            given.get("start_period", 0), f"{path}.start_period", least=0, most=_DAY
        ),
    )


def _test(value: Any, path: str) -> tuple[str, ...]:
    words = tuple(text(item, f"{path}.{n}") for n, item in enumerate(entries(value, path)))
    kind = words[0] if words else ""
    if kind not in {"CMD", "CMD-SHELL", "NONE"}:
        raise Invalid.field(path, f"{path} must begin with CMD, CMD-SHELL or NONE.")
    if kind == "NONE" and len(words) > 1:
        raise Invalid.field(path, f"{path}: NONE stands alone.")
    if kind == "CMD-SHELL" and len(words) != 2:
        raise Invalid.field(path, f"{path}: CMD-SHELL is followed by one command line.")
    if kind == "CMD" and len(words) < 2:
        raise Invalid.field(path, f"{path}: CMD is followed by a program and its arguments.")
    return words


def _first_repeated(values: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
