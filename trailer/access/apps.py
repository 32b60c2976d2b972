"""App registration of grants and capabilities."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "trailer.access"
    label = "access"
    verbose_name = "Access"
