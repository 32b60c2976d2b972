"""Tables of stacks: their syncs, revisions, deliveries, images, networks, volumes, credentials."""

from workspaces.stacks.models.delivery import WebhookDelivery
from workspaces.stacks.models.parts import NeedCredential, StackImage, StackNetwork, StackVolume
from workspaces.stacks.models.revision import StackRevision
from workspaces.stacks.models.stack import Stack, StackQueue
from workspaces.stacks.models.sync import Sync

__all__ = [
    "NeedCredential",
    "Stack",
    "StackImage",
    "StackNetwork",
    "StackQueue",
    "StackRevision",
    "StackVolume",
    "Sync",
    "WebhookDelivery",
]
