"""What the fields of a workspace are called, and how their values read. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from trailer.quantities import exact_size, rough_duration

BYTES: Final = "bytes"
SECONDS: Final = "seconds"
MINUTES: Final = "minutes"
ENTRIES: Final = "entries"


@dataclass(frozen=True)
class Field:
    """`unit` says how a value reads; `unset` is what no value means."""

    label: str
    unit: str = ""
    unset: str = "none"


# The only table of labels and units: sentences, pages and the API's `label` read it.
FIELDS: Final[dict[str, Field]] = {
    "name": Field("name"),
    "description": Field("description"),
    "desired_state": Field("wanted state"),
    "image": Field("image"),
    "command": Field("command", unset="the image's own"),
    "env": Field("environment", ENTRIES),
    "secret_env": Field("secret environment", ENTRIES),
    "labels": Field("labels", ENTRIES),
    "cpus": Field("CPUs", unset="no limit"),
    "memory_bytes": Field("memory", BYTES, "no limit"),
    "shm_bytes": Field("shared memory", BYTES, "the default"),
    "gpus": Field("GPUs"),
    "nested_virtualization": Field("nested virtualisation"),
    "ports": Field("ports"),
    "mounts": Field("volumes"),
    "networks": Field("networks"),
    "urls": Field("URLs"),
    "health_check": Field("health check"),
    "startup_timeout": Field("start-up timeout", SECONDS),
    "drain_timeout": Field("drain timeout", SECONDS),
    "shared_volumes": Field("shared volumes"),
    "idle_stop_minutes": Field("idle stop", MINUTES, "never"),
    "schedule": Field("schedule"),
    "restart_policy": Field("restart policy"),
    "redeploy": Field("redeploys"),
    "routing": Field("routing"),
}
_SECONDS: Final = {SECONDS: 1, MINUTES: 60}
_LONGEST: Final = 60


def label_of(field: str) -> str:
    known = FIELDS.get(field)
    return known.label if known else field.replace("_", " ")


def value_words(field: str, value: Any) -> str:
    """One side of a change as people read it; a value without a short form as JSON."""
    known = FIELDS.get(field) or Field(field)
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value in ("", [], {}):
        return known.unset
    if isinstance(value, int | float):
        if known.unit == BYTES:
            size = exact_size(int(value))
            return f"{size} bytes" if size.isdigit() else size
        if known.unit in _SECONDS:
            return _duration(value * _SECONDS[known.unit])
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def change_words(change: dict[str, Any]) -> str:
    """`memory from 64 MiB to 96 MiB`; of what has no short form, its label."""
    field, old, new = str(change.get("field", "")), change.get("from"), change.get("to")
    known = FIELDS.get(field)
    if known and known.unit == ENTRIES:
        names = sorted({*_names(old), *_names(new)})
        told = f"{known.label} ({', '.join(names)})"
        return told if names and len(told) <= _LONGEST else known.label
    sides = value_words(field, old), value_words(field, new)
    if (
        any(isinstance(side, list | dict) for side in (old, new))
        or max(map(len, sides)) > _LONGEST
    ):
        return label_of(field)
    return f"{label_of(field)} from {sides[0]} to {sides[1]}"


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, dict) else []


def _duration(seconds: float) -> str:
    if seconds < 60 and seconds == int(seconds):
        return f"{int(seconds)} s"
    return rough_duration(timedelta(seconds=seconds)).removesuffix(" 0 s").removesuffix(" 0 min")
