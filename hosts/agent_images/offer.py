"""Which image a host's agent starts from, and what an administrator must know about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings

from agent.protocol.naming import agent_image_name
from hosts.agent_images.line import archive_line, image_line
from hosts.agent_images.pinned import pinned_image
from hosts.agent_images.store import agent_archives, is_being_made, noted_problem

if TYPE_CHECKING:
    from hosts.agent_images.store import AgentArchive


@dataclass(frozen=True)
class AgentOffer:
    """`problem`: empty when the line brings exactly the image that was meant, to any machine."""

    image: str
    problem: str = ""
    is_local: bool = False
    archives: tuple[AgentArchive, ...] = field(default=())

    def line(self, token: str, server_url: str) -> str:
        if self.archives:
            return archive_line(token, self.archives, server_url=server_url)
        return image_line(token, self.image, server_url=server_url, is_local=self.is_local)

    @property
    def digests(self) -> dict[str, str]:
        """Of the archives in the line, by architecture."""
        return {archive.architecture: archive.digest for archive in self.archives}


def agent_offer() -> AgentOffer:
    """May ask a registry, which takes seconds: not inside a transaction."""
    if settings.TRAILER_AGENT_IMAGE:
        pinned = pinned_image(settings.TRAILER_AGENT_IMAGE)
        return AgentOffer(pinned.image, pinned.problem, pinned.is_local)
    image = agent_image_name(settings.TRAILER_VERSION)
    archives = tuple(agent_archives())
    if archives:
        return AgentOffer(image, archives=archives)
    if is_being_made():
        return AgentOffer(
            image,
            "The agent's image is being made on this server. Wait a minute, and get a new line.",
            is_local=True,
        )
    return AgentOffer(
        image,
        f"This server has no agent image to hand out. {noted_problem()}".strip()
        + f" Set TRAILER_AGENT_IMAGE to one in a registry of yours, or build {image} on the "
        "machine before you paste the line: docs/install.md says how.",
        is_local=True,
    )


def update_image() -> str:
    """What an update of all agents suggests; empty when only the administrator can know."""
    if settings.TRAILER_AGENT_IMAGE:
        return str(settings.TRAILER_AGENT_IMAGE)
    return agent_image_name(settings.TRAILER_VERSION) if agent_archives() else ""
