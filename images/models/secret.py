"""A secret that an image's builds may read; its value is written, never read back."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from images.models.image import Image
from trailer.sealed import SealedField


class BuildSecret(models.Model):
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="build_secrets")
    # What a Dockerfile mounts it by.
    name = models.CharField(max_length=128)
    # Encrypted; leaves the server only in the state document of the host that builds with it.
    value_token = SealedField(of=("image_id", "name"), editable=False)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["image", "name"], name="build_secret_name_once")
        ]

    def __str__(self) -> str:
        return self.name
