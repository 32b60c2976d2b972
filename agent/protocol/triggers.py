"""What ONBUILD lines of a base image may say: they run in a build that nobody wrote them for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.protocol.bases import image_sources
from agent.protocol.build_secrets import build_problem
from agent.protocol.dockerfile import lines_problem, read
from agent.protocol.remote_sources import trigger_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from agent.protocol.bases import Base

_SHOWN: Final = 200


def triggers_problem(base: Base, triggers: Iterable[str], secrets: Collection[str]) -> str:
    """Why nothing may be built from an image with these, or empty."""
    for trigger in triggers:
        if problem := _problem(base, trigger, secrets):
            return f"The base image {base.text} has the trigger “{trigger[:_SHOWN]}”. {problem}"
    return ""


def _problem(base: Base, trigger: str, secrets: Collection[str]) -> str:
    if problem := lines_problem(trigger):
        return problem
    for instruction in read(trigger):
        if problem := trigger_problem(instruction.text):
            return problem
        words = instruction.words
        # Who may read an image is asked for those that the Dockerfile itself names.
        for image in image_sources(words[0].upper(), words[1:], base.stages):
            return f"It takes the image {image}; only the Dockerfile itself may name images."
    return build_problem(trigger, {}, secrets) if secrets else ""
