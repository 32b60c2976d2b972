"""What users and agents may do to workspaces; the only writers of their tables."""

from workspaces.services.clone import workspace_clone
from workspaces.services.create import workspace_create
from workspaces.services.delete import workspace_delete
from workspaces.services.observed import workspace_event_record, workspace_observed
from workspaces.services.rollback import rollback_plan, workspace_rollback
from workspaces.services.run import (
    redeploy_plan,
    workspace_redeploy,
    workspace_start,
    workspace_stop,
)
from workspaces.services.snapshot import workspace_snapshot
from workspaces.services.timer import workspace_extend
from workspaces.services.transfer import workspace_transfer
from workspaces.services.update import Plan, workspace_plan, workspace_update

__all__ = [
    "Plan",
    "redeploy_plan",
    "rollback_plan",
    "workspace_clone",
    "workspace_create",
    "workspace_delete",
    "workspace_event_record",
    "workspace_extend",
    "workspace_observed",
    "workspace_plan",
    "workspace_redeploy",
    "workspace_rollback",
    "workspace_snapshot",
    "workspace_start",
    "workspace_stop",
    "workspace_transfer",
    "workspace_update",
]
