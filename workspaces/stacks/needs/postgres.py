"""The need `postgres`: one PostgreSQL with one database and one user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.protocol.spec import HealthCheckSpec
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.file.types import ServiceSpec, VolumeMount
from workspaces.stacks.needs.kind import NeedKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.stacks.file.types import NeedSpec

_NAME: Final = "postgres"
_IMAGE: Final = "postgres:17"
_VOLUME: Final = "needs-postgres"
_USER: Final = "app"
_PORT: Final = "5432"
_MIB: Final = 1024 * 1024


def _database(need: NeedSpec) -> str:
    return need.database or "app"


def _service(need: NeedSpec, credentials: Mapping[str, Secret]) -> ServiceSpec:
    return ServiceSpec(
        name=_NAME,
        image=need.image or _IMAGE,
        environment={
            "POSTGRES_USER": _USER,
            "POSTGRES_DB": _database(need),
            # Below the mount: a volume's own root may hold lost+found, which initdb refuses.
            "PGDATA": "/var/lib/postgresql/data/pgdata",
        },
        secret_environment={"POSTGRES_PASSWORD": credentials["password"]},
        mounts=(VolumeMount(volume=_VOLUME, target="/var/lib/postgresql/data"),),
        # Over TCP: during initialisation the server listens on its socket file alone, and a
        # service that starts then would find it gone a second later.
        health_check=HealthCheckSpec(
            test=("CMD", "pg_isready", "-h", "127.0.0.1", "-U", _USER, "-d", _database(need)),
            interval=2.0,
            timeout=5.0,
            retries=15,
            start_period=float(need.ready_timeout),
        ),
        cpus=need.cpus,
        memory_bytes=need.memory_bytes,
        shm_bytes=128 * _MIB,
        update_policy="if_missing",
        startup_timeout=need.ready_timeout,
        drain_timeout=60,
    )


def _values(need: NeedSpec, credentials: Mapping[str, Secret]) -> Mapping[str, str | Secret]:
    password = credentials["password"]
    return {
        "host": _NAME,
        "port": _PORT,
        "user": _USER,
        "password": password,
        "database": _database(need),
        "url": Secret(
            f"postgresql://{_USER}:{password.reveal()}@{_NAME}:{_PORT}/{_database(need)}"
        ),
    }


KIND: Final = NeedKind(
    name=_NAME,
    credentials=("password",),
    volume=_VOLUME,
    options=("database",),
    service=_service,
    values=_values,
)
