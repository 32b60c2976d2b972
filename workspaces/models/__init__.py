"""Tables of workspaces, their parts, their ledger and their revisions."""

from workspaces.models.gpus import GpuHold
from workspaces.models.ledger import Event, Revision
from workspaces.models.metrics import WorkspaceSample
from workspaces.models.parts import EnvVar, Mount, NetworkAttachment, Port, Url
from workspaces.models.timer import Timer
from workspaces.models.workspace import Workspace

__all__ = [
    "EnvVar",
    "Event",
    "GpuHold",
    "Mount",
    "NetworkAttachment",
    "Port",
    "Revision",
    "Timer",
    "Url",
    "Workspace",
    "WorkspaceSample",
]
