"""What a stack has on its host besides services: images, networks, credentials of needs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from hosts.models import Network, Volume
from images.choices import UpdatePolicy
from images.models import Image
from trailer.sealed import SealedField
from workspaces.stacks.models.stack import Stack


class StackImage(models.Model):
    """The image row that stands for one reference under one update policy.

    Another reference is another row, so that a new one is on the host before any service is told
    to use it. Another policy is another row, so that a service that follows the registry moves no
    service that stays with what it was given.
    """

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="images")
    reference = models.CharField(max_length=512)
    update_policy = models.CharField(
        max_length=16, choices=UpdatePolicy.choices, default=UpdatePolicy.IF_MISSING
    )
    image = models.OneToOneField(Image, on_delete=models.CASCADE, related_name="stack_image")
    # Number of the newest revision that ran with it; 0 when none ever did.
    last_revision = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["stack", "reference", "update_policy"],
                name="image_per_reference_and_policy",
            )
        ]

    def __str__(self) -> str:
        return self.reference


class StackNetwork(models.Model):
    """A network that was made for the stack and goes with it; `key` is the file's word for it."""

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="networks")
    key = models.CharField(max_length=63)
    network = models.OneToOneField(Network, on_delete=models.CASCADE, related_name="stack_network")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stack", "key"], name="network_per_key")
        ]

    def __str__(self) -> str:
        return self.key


class StackVolume(models.Model):
    """Which stack's volume it is, by name: it outlives the stack and is found again by the next
    one of that name and owner. Two pairs of stack and key may spell one name; they must not share
    it, so `key`, the file's word for it, is stored: the volume may have got another name."""

    volume = models.OneToOneField(Volume, on_delete=models.CASCADE, related_name="stack_volume")
    stack_name = models.CharField(max_length=40)
    key = models.CharField(max_length=63, default="")
    # Id of the stack that uses it, or was the last to do so.
    used_by = models.UUIDField(null=True)

    def __str__(self) -> str:
        return f"volume {self.volume} of {self.stack_name}"


class NeedCredential(models.Model):
    """What opens the data of a need: it lives exactly as long as the volume with that data."""

    volume = models.OneToOneField(Volume, on_delete=models.CASCADE, related_name="need_credential")
    # Encrypted JSON.
    token = SealedField(of=("volume_id",), editable=False)

    def __str__(self) -> str:
        return f"credential of {self.volume}"
