"""The app of stacks: what a git repository says should run."""

from django.apps import AppConfig


class StacksConfig(AppConfig):
    name = "workspaces.stacks"
    label = "stacks"
