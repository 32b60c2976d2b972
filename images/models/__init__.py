"""Tables of images, builds, build logs and registries."""

from images.models.build import Build, BuildLogChunk
from images.models.image import Image
from images.models.registry import Registry, RegistryTest
from images.models.secret import BuildSecret

__all__ = ["Build", "BuildLogChunk", "BuildSecret", "Image", "Registry", "RegistryTest"]
