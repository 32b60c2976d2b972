"""Fixed vocabularies of hosts, networks and volumes."""

from django.db import models


class HostStatus(models.TextChoices):
    PENDING = "pending", "Pending"
    ONLINE = "online", "Online"
    OFFLINE = "offline", "Offline"
    DISABLED = "disabled", "Disabled"


class RouterMode(models.TextChoices):
    NONE = "none", "None"
    TRAEFIK_FILES = "traefik-files", "Traefik, configuration files"
    TRAEFIK_LABELS = "traefik-labels", "Traefik, container labels"


class NetworkDriver(models.TextChoices):
    BRIDGE = "bridge", "Bridge"
    MACVLAN = "macvlan", "Macvlan"


class VolumeKind(models.TextChoices):
    VOLUME = "volume", "Volume"
    BIND = "bind", "Bind mount"


class ResourceStatus(models.TextChoices):
    """Networks and volumes."""

    PENDING = "pending", "Pending"
    CREATED = "created", "Created"
    ERROR = "error", "Error"


class TombstoneKind(models.TextChoices):
    WORKSPACE = "workspace", "Workspace"
    NETWORK = "network", "Network"
    VOLUME = "volume", "Volume"
    IMAGE = "image", "Image"


class RolloutStatus(models.TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    HALTED = "halted", "Halted"
    STOPPED = "stopped", "Stopped"


class RolloutHostStatus(models.TextChoices):
    WAITING = "waiting", "Waiting"
    ORDERED = "ordered", "Ordered"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
