"""Desired and observed in, plan out: pure, deterministic, without engine, clock or network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.cleanup import Removals
from agent.diff.images import diff_images
from agent.diff.leftovers import find_leftovers
from agent.diff.links import diff_links
from agent.diff.networks import diff_networks
from agent.diff.prerequisites import diff_prerequisites
from agent.diff.readiness import Readiness
from agent.diff.routing import diff_routes
from agent.diff.snapshots import diff_snapshots
from agent.diff.superseded import diff_superseded
from agent.diff.view import Knowledge, View
from agent.diff.volumes import diff_volumes
from agent.diff.workspaces import WorkspaceDiff
from agent.plan import LeftoversFinding, Plan, PlanBuilder

if TYPE_CHECKING:
    from datetime import datetime

    from agent.observed import ObservedState
    from agent.protocol.state import HostState


def make_plan(
    desired: HostState, observed: ObservedState, knows: Knowledge, *, now: datetime
) -> Plan:
    """In the cycle's order."""
    view = View(desired=desired, observed=observed, knows=knows, now=now)
    plan = PlanBuilder()
    diff_prerequisites(view, plan)
    links = diff_links(view, plan)
    diff_routes(view, plan)
    networks = diff_networks(view, plan)
    volumes = diff_volumes(view, plan)
    diff_images(view, plan)
    removals = Removals(view, plan)
    ready = Readiness(
        view, plan, networks=networks, volumes=volumes, links=links, removals=removals
    )
    WorkspaceDiff(view, plan, ready).run()
    diff_snapshots(view, plan)
    diff_superseded(view, plan)
    removals.finish()
    plan.findings.append(LeftoversFinding(leftovers=find_leftovers(view)))
    return plan.build()
