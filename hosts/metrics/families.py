"""The families of samples: which table holds them and what it measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hosts.models import GpuSample, Host, HostSample

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db import models

    from hosts.models import Sample

RAW: Final = 0
MINUTE: Final = 60
HOUR: Final = 3600


@dataclass(frozen=True)
class Family:
    """`subject` names the columns that say whose sample a row is; the first is the owner, whose
    rows `owners` finds from a queryset of hosts. The database drives by them into the index."""

    name: str
    model: type[Sample]
    subject: tuple[str, ...]
    owners: Callable[[models.QuerySet[Host]], models.QuerySet[models.Model]]

    @property
    def values(self) -> tuple[models.Field[object, object], ...]:
        keys = {*self.subject, "resolution", "at", "pk"}
        return tuple(
            field for field in self.model._meta.concrete_fields if field.attname not in keys
        )


HOSTS: Final = Family("host", HostSample, ("host_id",), lambda hosts: hosts)
GPUS: Final = Family("gpu", GpuSample, ("host_id", "gpu"), lambda hosts: hosts)
