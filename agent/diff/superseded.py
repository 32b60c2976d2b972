"""Pulled images that a newer pull took the name from: removed by order, once nobody needs them.

What an image is rolled back to is its row, never an older id: only containers, workspaces and
references can still mean one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.view import View, object_key
from agent.sizes import in_words
from agent.steps import IMAGE, RemoveSuperseded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.observed import ObservedImage
    from agent.plan import PlanBuilder

KIND = "superseded"


def diff_superseded(view: View, plan: PlanBuilder) -> None:
    if not view.knows.pulled or view.knows.hold_removals:
        return
    orders, needed = _orders(view), _needed(view)
    for image in sorted(view.observed.images, key=lambda i: i.id):
        image_id = view.knows.pulled.get(image.id, "")
        if image_id not in orders or image.id in needed or not _is_loose(view, image):
            continue
        key = object_key(KIND, image.id)
        if key in view.knows.held or view.is_busy(key) or view.is_busy(_row(image_id)):
            continue
        step = RemoveSuperseded(
            key=key,
            name=orders[image_id],
            cause=f"superseded by a newer pull; at most {in_words(image.size_bytes)} are freed",
            image_key=_row(image_id),
            engine_id=image.id,
        )
        plan.add(step, cleanup=True)


def _orders(view: View) -> Mapping[str, str]:
    """Image id -> name of those whose older pulls may go: the server says which to keep, or has
    the whole image removed."""
    deleted = {t.object_id: t.name for t in view.desired.tombstones if t.kind == IMAGE}
    return deleted | {i.id: i.name for i in view.desired.images if i.keep is not None}


def _needed(view: View) -> set[str]:
    """Engine ids that something on this host means."""
    desired = view.desired
    needed = {container.image_id for container in view.observed.containers}
    needed |= {workspace.spec.image_engine_id for workspace in desired.workspaces}
    needed |= {engine_id for image in desired.images for engine_id in image.keep or ()}
    refs = [image.ref for image in desired.images]
    refs += [workspace.spec.image_ref for workspace in desired.workspaces]
    refs += [prerequisite.image for prerequisite in desired.prerequisites]
    refs.append(desired.settings.agent_image)
    needed |= {found.id for ref in refs if ref and (found := view.image_at(ref))}
    return needed


def _is_loose(view: View, image: ObservedImage) -> bool:
    """Without a name but the digests that its pull left, which no build names as a base."""
    if image.tags or len({digest.partition("@")[0] for digest in image.digests}) > 1:
        return False
    digests = [digest.partition("@")[2] for digest in image.digests]
    return not any(d in row.dockerfile for row in view.desired.images for d in digests)


def _row(image_id: str) -> str:
    return object_key(IMAGE, image_id)
