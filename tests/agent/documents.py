"""Short ways to write desired documents and observed hosts in tests."""

from datetime import UTC, datetime
from typing import Any

from agent.diff.view import Knowledge
from agent.protocol.spec import WorkspaceSpec
from agent.protocol.state import (
    DesiredBuild,
    DesiredImage,
    DesiredNetwork,
    DesiredVolume,
    DesiredWorkspace,
    HostSettings,
    HostState,
    Tombstone,
)
from tests.agent.fake_server import HOST_ID, HOST_KEY

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
IMAGE_REF = "busybox:1"


def workspace(name: str = "web", **fields: Any) -> DesiredWorkspace:
    """Fields of the workspace itself are taken out, the rest belongs to its spec."""
    own = {
        key: fields.pop(key)
        for key in (
            *("revision", "desired_state", "startup_timeout", "drain_timeout"),
            "shared_volumes",
        )
        if key in fields
    }
    workspace_id = fields.pop("id", f"w-{name}")
    spec = {"image_ref": IMAGE_REF, "image_id": "i-bb", **fields}
    return DesiredWorkspace(
        id=workspace_id,
        **{"revision": 1, "desired_state": "running", **own},
        spec=WorkspaceSpec(name=name, **spec),
    )


def image(name: str = "bb", *, done: bool = True, **fields: Any) -> DesiredImage:
    image_id = fields.pop("id", f"i-{name}")
    build = fields.pop("build", DesiredBuild(id=f"b-{name}", number=1, done=done))
    ref = fields.pop("ref", IMAGE_REF)
    given = {"kind": "pull", "reference": ref, **fields}
    return DesiredImage(id=image_id, name=name, ref=ref, build=build, **given)


def network(name: str = "lan", **fields: Any) -> DesiredNetwork:
    return DesiredNetwork(id=f"n-{name}", name=name, **fields)


def volume(name: str = "data", **fields: Any) -> DesiredVolume:
    return DesiredVolume(id=f"v-{name}", name=name, **fields)


def tombstone(kind: str, object_id: str, name: str) -> Tombstone:
    return Tombstone(id=f"t-{object_id}", kind=kind, object_id=object_id, name=name)


def document(**lists: Any) -> HostState:
    """The usual image is part of the document unless another list of images is given."""
    usual = {"images": (image(),), "settings": HostSettings(), "version": 1, "state_epoch": 1}
    return HostState(host_id=HOST_ID, protocol=1, **{**usual, **lists})


def knowledge(**fields: Any) -> Knowledge:
    return Knowledge(host_id=HOST_ID, host_key=HOST_KEY, **fields)
