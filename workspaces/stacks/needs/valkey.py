"""The need `valkey`: one Valkey (Redis protocol) with a password, kept on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.protocol.spec import HealthCheckSpec
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.file.types import ServiceSpec, VolumeMount
from workspaces.stacks.needs.kind import NeedKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.stacks.file.types import NeedSpec

_NAME: Final = "valkey"
_IMAGE: Final = "valkey/valkey:8"
_VOLUME: Final = "needs-valkey"
_USER: Final = "default"
_PORT: Final = "6379"
# The password reaches server and client by the environment and a file of the server's own user:
# neither the command, which is no secret, nor the process list shows it.
_START: Final = """
umask 077
printf 'requirepass %s\\n' "$VALKEY_PASSWORD" > /tmp/valkey.conf
chown valkey /tmp/valkey.conf 2>/dev/null
set -- valkey-server /tmp/valkey.conf --appendonly yes --dir /data
command -v docker-entrypoint.sh >/dev/null && set -- docker-entrypoint.sh "$@"
exec "$@"
"""
_PING: Final = 'REDISCLI_AUTH="$VALKEY_PASSWORD" valkey-cli ping | grep -q PONG'


def _service(need: NeedSpec, credentials: Mapping[str, Secret]) -> ServiceSpec:
    return ServiceSpec(
        name=_NAME,
        image=need.image or _IMAGE,
        command=("sh", "-c", _START),
        secret_environment={"VALKEY_PASSWORD": credentials["password"]},
        mounts=(VolumeMount(volume=_VOLUME, target="/data"),),
        health_check=HealthCheckSpec(
            test=("CMD-SHELL", _PING),
            interval=2.0,
            timeout=5.0,
            retries=15,
            start_period=float(need.ready_timeout),
        ),
        cpus=need.cpus,
        memory_bytes=need.memory_bytes,
        update_policy="if_missing",
        startup_timeout=need.ready_timeout,
        drain_timeout=30,
    )


def _values(_need: NeedSpec, credentials: Mapping[str, Secret]) -> Mapping[str, str | Secret]:
    password = credentials["password"]
    return {
        "host": _NAME,
        "port": _PORT,
        "user": _USER,
        "password": password,
        "database": "0",
        "url": Secret(f"redis://{_USER}:{password.reveal()}@{_NAME}:{_PORT}/0"),
    }


KIND: Final = NeedKind(
    name=_NAME, credentials=("password",), volume=_VOLUME, service=_service, values=_values
)
