"""App registration of the audit."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "trailer.audit"
    label = "audit"
    verbose_name = "Audit"
