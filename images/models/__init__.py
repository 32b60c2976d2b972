"""Tables of images, builds, build logs and registries."""

from images.models.build import Build, BuildLogChunk
from images.models.image import Image
from images.models.registry import Registry, RegistryTest

__all__ = ["Build", "BuildLogChunk", "Image", "Registry", "RegistryTest"]
