"""A host as its agent is told to make it: a desired document behind a fake server, with verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent.protocol import naming
from agent.protocol.state import DesiredBuild, HostSettings
from tests.agent import documents
from tests.agent.fake_server import FakeServer
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED

if TYPE_CHECKING:
    from agent.protocol.report import WorkspaceEvent, WorkspaceStatus
    from agent.protocol.state import (
        DesiredImage,
        DesiredNetwork,
        DesiredVolume,
        DesiredWorkspace,
        Tombstone,
    )

_OF_THE_WORKSPACE = frozenset(
    {"desired_state", "startup_timeout", "drain_timeout", "shared_volumes"}
)


class DesiredHost:
    """Every verb changes the document as a user's edit would, and publishes it at once; inside
    `with host.one_edit():` several verbs make one new document."""

    def __init__(self) -> None:
        self.server = FakeServer().start()
        self.networks: dict[str, DesiredNetwork] = {}
        self.volumes: dict[str, DesiredVolume] = {}
        self.images: dict[str, DesiredImage] = {}
        self.workspaces: dict[str, DesiredWorkspace] = {}
        self.tombstones: dict[str, Tombstone] = {}
        self._edits = 0
        self._deaths = 0
        self.version = 0
        self.settings(reconcile_interval=1.0, heartbeat_interval=3600.0)

    def close(self) -> None:
        self.server.stop()

    # --- edits ---------------------------------------------------------------------------------

    def settings(self, **fields: Any) -> None:
        known = getattr(self.server, "settings", HostSettings())
        self.server.settings = msgspec.structs.replace(known, **fields)
        self.publish()

    def publish(self) -> None:
        if self._edits:
            return
        self.version += 1
        self.server.desire(
            networks=tuple(self.networks.values()),
            volumes=tuple(self.volumes.values()),
            images=tuple(self.images.values()),
            workspaces=tuple(self.workspaces.values()),
            tombstones=tuple(self.tombstones.values()),
        )

    def one_edit(self) -> OneEdit:
        return OneEdit(self)

    def begin(self) -> None:
        self._edits += 1

    def end(self) -> None:
        self._edits -= 1
        self.publish()

    def image(self, name: str = "bb", *, ref: str = BUSYBOX, **fields: Any) -> DesiredImage:
        """A pulled image that is already on the host, unless the fields say otherwise."""
        self.images[name] = documents.image(name, ref=ref, **fields)
        self.publish()
        return self.images[name]

    def build(self, name: str, dockerfile: str, *, number: int = 1, **fields: Any) -> DesiredImage:
        """An image to be built now; a further number is a rebuild."""
        return self.image(
            name,
            ref=naming.build_ref(f"i-{name}"),
            kind="build",
            dockerfile=dockerfile,
            build=DesiredBuild(id=f"b-{name}-{number}", number=number),
            revision=number,
            **fields,
        )

    def cancel_build(self, name: str) -> None:
        image = self.images[name]
        assert image.build is not None
        build = msgspec.structs.replace(image.build, cancel=True)
        self.images[name] = msgspec.structs.replace(image, build=build)
        self.publish()

    def network(self, name: str, **fields: Any) -> DesiredNetwork:
        self.networks[name] = documents.network(name, **fields)
        self.publish()
        return self.networks[name]

    def volume(self, name: str, **fields: Any) -> DesiredVolume:
        self.volumes[name] = documents.volume(name, **fields)
        self.publish()
        return self.volumes[name]

    def workspace(self, name: str, /, *, image: str = "bb", **fields: Any) -> DesiredWorkspace:
        """A workspace that runs until it is stopped; its image is made part of the document."""
        with self.one_edit():
            made = self.images.get(image) or self.image(image)
            given = {
                "image_ref": made.ref,
                "image_id": made.id,
                "command": tuple(RUN_UNTIL_STOPPED),
                "drain_timeout": 2.0,
                **fields,
            }
            self.workspaces[name] = documents.workspace(name, **given)
        return self.workspaces[name]

    def edit(self, name: str, /, **fields: Any) -> DesiredWorkspace:
        """Change fields of the spec (or of the workspace itself): one revision more."""
        known = self.workspaces[name]
        own = {key: fields.pop(key) for key in _OF_THE_WORKSPACE & set(fields)}
        self.workspaces[name] = msgspec.structs.replace(
            known,
            **own,
            revision=known.revision + 1,
            spec=msgspec.structs.replace(known.spec, **fields),
        )
        self.publish()
        return self.workspaces[name]

    def respell(self, name: str, /, **fields: Any) -> None:
        """Other spelling, same meaning, no new revision."""
        known = self.workspaces[name]
        spec = msgspec.structs.replace(known.spec, **fields)
        self.workspaces[name] = msgspec.structs.replace(known, spec=spec)
        self.publish()

    # --- removals --------------------------------------------------------------------------------

    def delete_workspace(self, name: str) -> None:
        gone = self.workspaces.pop(name)
        self._bury("workspace", gone.id, naming.container_name(gone.spec.name))

    def delete_network(self, name: str) -> None:
        self._bury("network", self.networks.pop(name).id, naming.network_name(name))

    def delete_volume(self, name: str) -> None:
        self._bury("volume", self.volumes.pop(name).id, naming.volume_name(name))

    def delete_image(self, name: str) -> None:
        gone = self.images.pop(name)
        self._bury("image", gone.id, gone.ref)

    def lose(self, *names: str) -> None:
        """Workspaces vanish from the document without anybody's order."""
        for name in names:
            del self.workspaces[name]
        self.publish()

    def forget_tombstones(self) -> None:
        """The server drops tombstones that the agent has reported done."""
        self.tombstones = {}
        self.publish()

    def _bury(self, kind: str, object_id: str, name: str) -> None:
        self._deaths += 1
        made = documents.tombstone(kind, object_id, name)
        self.tombstones[object_id] = msgspec.structs.replace(made, id=f"t{self._deaths}")
        self.publish()

    # --- what the agent said ---------------------------------------------------------------------

    def events(self, name: str) -> list[WorkspaceEvent]:
        return self.server.events(f"w-{name}")

    def status(self, name: str) -> WorkspaceStatus:
        known = self.server.status(f"w-{name}")
        assert known is not None, f"nothing was ever reported about {name}"
        return known


class OneEdit:
    def __init__(self, host: DesiredHost) -> None:
        self._host = host

    def __enter__(self) -> None:
        self._host.begin()

    def __exit__(self, *_: object) -> None:
        self._host.end()
