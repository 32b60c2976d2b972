"""App registration of users and tokens."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "trailer.accounts"
    label = "accounts"
    verbose_name = "Accounts"
