"""What each action is called in a refusal: "You may not …"."""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "host.workspaces": "create workspaces on this host",
    "host.images": "create images on this host",
    "host.volumes": "create volumes on this host",
    "host.networks": "create networks on this host",
    "host.addresses": (
        "choose the addresses, the driver macvlan or the interface of a network on this host; "
        "without them the engine chooses free addresses"
    ),
    "host.bind": "mount folders of this host",
    "host.privileged": "turn on privileged settings on this host",
    "workspace.logs": "read the logs of this workspace",
    "workspace.inspect": "see how this workspace is configured",
    "workspace.exec": "run commands in this workspace",
    "workspace.attach": "attach to this workspace",
    "workspace.copy": "take snapshots or clones of this workspace, which show all its files",
    "workspace.snapshots": "see whose the snapshots of this workspace are",
    "volume.write": "write to this volume",
    "volume.evict": "take this volume away from workspaces",
    "network.evict": "take this network away from workspaces",
    "image.evict": "take this image away from workspaces",
    "image.source": "see what this image is made from",
    "image.secrets": "use the build secrets of this image",
    "stack.source": "change where the files of this stack come from",
}


def action_words(action: str) -> str:
    if action in _WORDS:
        return _WORDS[action]
    noun, verb = action.split(".", maxsplit=1)
    return f"{verb.replace('_', ' ')} this {noun}" if verb != "create" else f"create a {noun}"
