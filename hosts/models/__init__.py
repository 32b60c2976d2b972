"""Tables of hosts and what belongs to exactly one host."""

from hosts.models.cycle import Cycle
from hosts.models.document import HostDocument, still_holds
from hosts.models.enrolment import AgentToken, Enrolment
from hosts.models.host import Host
from hosts.models.metrics import GpuSample, HostSample, HostUsage, RollupMark, Sample
from hosts.models.network import Network
from hosts.models.rollout import AgentRollout, RolloutHost
from hosts.models.tombstone import Tombstone
from hosts.models.volume import Volume

__all__ = [
    "AgentRollout",
    "AgentToken",
    "Cycle",
    "Enrolment",
    "GpuSample",
    "Host",
    "HostDocument",
    "HostSample",
    "HostUsage",
    "Network",
    "RolloutHost",
    "RollupMark",
    "Sample",
    "Tombstone",
    "Volume",
    "still_holds",
]
