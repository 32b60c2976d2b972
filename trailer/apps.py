"""App registration of the project itself, for its management commands."""

from django.apps import AppConfig


class TrailerConfig(AppConfig):
    name = "trailer"
    verbose_name = "Trailer"
