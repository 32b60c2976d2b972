"""Takes a report apart and hands each item to the service that owns those observed columns."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from django.db import IntegrityError

from agent.protocol.report import (
    BuildStatus,
    CycleReport,
    ImageObserved,
    LeftoversReport,
    RegistryTested,
    ReportReply,
    ResourceStatus,
    TombstoneDone,
    WorkspaceEvent,
    WorkspaceStatus,
)
from hosts.services.observed import (
    cycle_record,
    leftovers_observed,
    network_observed,
    prerequisite_observed,
    tombstone_done,
    volume_observed,
)
from images.services.observed import build_observed, image_observed
from images.services.registry_tests import registry_tested
from trailer.errors import ApplicationError, Invalid, Unavailable
from workspaces.services import workspace_event_record, workspace_observed
from workspaces.services.volume_loss import volume_data_gone

if TYPE_CHECKING:
    from agent.protocol.report import Report, ReportItem
    from hosts.models import Host

logger = logging.getLogger(__name__)


def report_ingest(host: Host, report: Report) -> ReportReply:
    """Every item is answered: applied, stale, or refused for good with the reason.

    A refused item must not be sent again for ever, nor hold back the items behind it.
    """
    accepted: list[int] = []
    refused: dict[str, str] = {}
    for item in report.items:
        try:
            _apply(host, item, report.epoch)
        except Unavailable:
            raise
        except IntegrityError:
            # What it is about went between two statements: an agent that got an error would send
            # the whole report again for ever.
            logger.warning(
                "report item dropped",
                extra={"host": str(host.id), "seq": item.seq},
                exc_info=True,
            )
        except ApplicationError as error:
            logger.warning(
                "report item refused",
                extra={"host": str(host.id), "seq": item.seq, "reason": error.message},
            )
            refused[str(item.seq)] = error.message
        accepted.append(item.seq)
    return ReportReply(accepted=tuple(accepted), refused=refused)


def _apply(host: Host, item: ReportItem, epoch: int) -> None:
    match item:
        case WorkspaceStatus():
            workspace_observed(host, item, epoch)
        case WorkspaceEvent():
            workspace_event_record(host, item, epoch)
        case ResourceStatus():
            _apply_resource(host, item, epoch)
        case BuildStatus():
            build_observed(host, item, epoch)
        case ImageObserved():
            image_observed(host, item, epoch)
        case RegistryTested():
            registry_tested(host, item)
        case TombstoneDone():
            tombstone_done(host, item)
        case CycleReport():
            cycle_record(host, item, epoch)
        case LeftoversReport():
            leftovers_observed(host, item, epoch)
        case _:
            assert_never(item)


def _apply_resource(host: Host, item: ResourceStatus, epoch: int) -> None:
    match item.resource:
        case "network":
            network_observed(host, item, epoch)
        case "volume":
            volume_observed(host, item, epoch, on_data_gone=volume_data_gone)
        case "prerequisite":
            prerequisite_observed(host, item, epoch)
        case _:
            raise Invalid(f"There are no reports about a {item.resource}.")
