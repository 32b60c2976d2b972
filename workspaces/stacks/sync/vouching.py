"""Whose rights a stack's file is judged by: its owner's, in whose name all is made, and those of
whoever last chose where the file comes from. Else a manager of somebody's stack could have, by a
repository of their own, what only its owner may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.protocol import image_refs
from hosts.models import Network, Volume
from images.models import Image, Registry
from trailer import policy
from trailer.errors import Invalid, NotAllowed

if TYPE_CHECKING:
    from django.db.models import Model

    from trailer.accounts.models import User
    from workspaces.stacks.models import Stack

_WHOEVER = "Whoever last changed where the files of the stack come from"


@dataclass(frozen=True)
class Vouched:
    """`source_by` is None when that user is gone: nobody vouches for the source then."""

    stack: Stack
    source_by: User | None

    def require_bind(self) -> None:
        policy.require(self.stack.owner, "host.bind", self.stack.host)
        if not self._may("host.bind", self.stack.host):
            raise NotAllowed(
                f"{_WHOEVER} may not mount folders of this host. Have them changed by who may."
            )

    def volume(self, name: str) -> Volume:
        """One that is on the host already."""
        rows = Volume.objects.usable_by(self.stack.owner).filter(host=self.stack.host, name=name)
        volume = rows.first()
        if volume is None:
            raise self._absent("volume", name)
        if not self._may("volume.use", volume):
            raise NotAllowed(f"{_WHOEVER} may not use the volume {name}.")
        return volume

    def require_write(self, volume: Volume) -> None:
        """The owner's right is judged with the workspace that mounts it."""
        if not self._may("volume.write", volume):
            raise NotAllowed(
                f"{_WHOEVER} may only read the volume {volume.name}. Mount it read-only."
            )

    def may_write(self, volume: Volume) -> bool:
        return self._may("volume.write", volume)

    def may_use(self, image: Image) -> bool:
        return self._may("image.use", image)

    def registry(self, server: str) -> Registry | None:
        """The owner's own credential for exactly that server, if there is one. It fetches nothing
        for a file that somebody chose who may not use it; what is public comes without."""
        key = image_refs.server_key(server)
        own = Registry.objects.filter(owner=self.stack.owner, server=key)
        registry = own.order_by("-updated_at").first()
        if registry is None or not self._may("registry.view", registry):
            return None
        return registry

    def network(self, name: str) -> Network:
        rows = Network.objects.usable_by(self.stack.owner).filter(host=self.stack.host, name=name)
        network = rows.first()
        if network is None:
            raise self._absent("network", name)
        if not self._may("network.use", network):
            raise NotAllowed(f"{_WHOEVER} may not use the network {name}.")
        return network

    def _may(self, action: str, obj: Model) -> bool:
        by = self.source_by
        return by is not None and (by == self.stack.owner or policy.allows(by, action, obj))

    def _absent(self, noun: str, name: str) -> Invalid:
        return Invalid(
            f"The host {self.stack.host.name} has no {noun} {name} that the stack's owner may "
            "use. Create it first, or leave out external."
        )
