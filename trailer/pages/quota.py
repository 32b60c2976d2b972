"""Quotas as bars: what is taken of each limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trailer.access.quotas import RESOURCES, amount
from workspaces.services.quota import quotas_told

if TYPE_CHECKING:
    from trailer.accounts.models import User

_LABELS: Final = {
    "workspaces": "Workspaces",
    "cpus": "CPUs of running workspaces",
    "memory_bytes": "Memory of running workspaces",
    "gpus": "GPUs of running workspaces",
    "disk_bytes": "Images and snapshots",
}


@dataclass(frozen=True)
class Bar:
    resource: str
    label: str
    used: str
    limit: str
    percent: int

    @property
    def is_full(self) -> bool:
        return self.percent >= 100


@dataclass(frozen=True)
class QuotaBars:
    title: str
    bars: list[Bar]


def quota_bars(user: User) -> list[QuotaBars]:
    """Only resources with a limit; the user's own quota, then those of the groups."""
    told = sorted(
        quotas_told(user.pk), key=lambda quota: (quota["subject"] != "user", quota["name"])
    )
    return [
        QuotaBars(
            title="Yours" if quota["subject"] == "user" else f"Group {quota['name']}",
            bars=[
                _bar(name, quota["used"][name], quota["limits"][name])
                for name in RESOURCES
                if quota["limits"][name] is not None
            ],
        )
        for quota in told
    ]


def _bar(name: str, used: float, limit: float) -> Bar:
    percent = 100 if used >= limit else int(100 * used / limit)
    return Bar(name, _LABELS[name], amount(name, used), amount(name, limit), percent)
