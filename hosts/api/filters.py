"""Filters of the lists of hosts, networks and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone
from django_filters import rest_framework as filters

from hosts.choices import HostStatus, NetworkDriver, ResourceStatus, VolumeKind
from hosts.status import host_status
from trailer.api.filters import FlagFilter, NameFilter, OnHostFilter

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from hosts.models import Host


class HostFilter(NameFilter):
    enabled = FlagFilter()
    status = filters.ChoiceFilter(choices=HostStatus.choices, method="by_status")

    def by_status(self, rows: QuerySet[Host], name: str, value: str) -> QuerySet[Host]:
        """The status depends on the clock and each host's own interval; hosts are few."""
        now = timezone.now()
        return rows.filter(pk__in=[row.pk for row in rows if host_status(row, now) == value])


class NetworkFilter(OnHostFilter):
    status = filters.ChoiceFilter(choices=ResourceStatus.choices)
    driver = filters.ChoiceFilter(choices=NetworkDriver.choices)


class VolumeFilter(OnHostFilter):
    status = filters.ChoiceFilter(choices=ResourceStatus.choices)
    kind = filters.ChoiceFilter(choices=VolumeKind.choices)
