"""What a new stack file changes, in sentences; from the files as written, so without secrets."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workspaces.stacks.file.types import ServiceSpec, StackFile


def summary(old: StackFile | None, new: StackFile) -> list[str]:
    before = {} if old is None else {service.name: service for service in old.services}
    after = {service.name: service for service in new.services}
    sentences = [f"service {name} added" for name in after if name not in before]
    sentences += [f"service {name} removed" for name in before if name not in after]
    for name, service in after.items():
        if name in before:
            sentences += _differences(before[name], service)
    had = set() if old is None else {need.kind: need for need in old.needs}.keys()
    has = {need.kind: need for need in new.needs}.keys()
    sentences += [f"need {kind} added" for kind in sorted(has - had)]
    sentences += [f"need {kind} removed; its data stays" for kind in sorted(had - has)]
    kept_old = {need.kind: need for need in old.needs} if old else {}
    sentences += [
        f"need {need.kind} changed"
        for need in new.needs
        if need.kind in kept_old and kept_old[need.kind] != need
    ]
    return sentences


def _differences(old: ServiceSpec, new: ServiceSpec) -> list[str]:
    if old.image != new.image:
        said = [f"service {new.name}: image {old.image} → {new.image}"]
    else:
        said = []
    changed = [
        field.name
        for field in fields(new)
        if field.name != "image" and getattr(old, field.name) != getattr(new, field.name)
    ]
    return [*said, *(f"service {new.name}: {name} changed" for name in changed)]
