"""App registration of the leases."""

from django.apps import AppConfig


class LeasesConfig(AppConfig):
    name = "trailer.leases"
    label = "leases"
    verbose_name = "Leases"
