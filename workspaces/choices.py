"""Fixed vocabularies of workspaces."""

from django.db import models


class DesiredState(models.TextChoices):
    RUNNING = "running", "Running"
    STOPPED = "stopped", "Stopped"


class WorkspaceStatus(models.TextChoices):
    DEPLOYMENT_PENDING = "deployment_pending", "Deployment pending"
    DEPLOYING = "deploying", "Deploying"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    STOPPING = "stopping", "Stopping"
    STOPPED = "stopped", "Stopped"
    SNAPSHOTTING = "snapshotting", "Snapshotting"
    ERROR = "error", "Error"


class PortProtocol(models.TextChoices):
    TCP = "tcp", "TCP"
    UDP = "udp", "UDP"


class UrlAuth(models.TextChoices):
    OWNER = "owner", "Only the owner"
    USERS = "users", "Signed-in users who may see the workspace"
    PUBLIC = "public", "Everybody"
