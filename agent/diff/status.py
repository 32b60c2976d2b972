"""A workspace's status from what inspect says; the planner and the executor use the same words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent.plan import WorkspaceFinding
from agent.protocol.counting import counted

if TYPE_CHECKING:
    from agent.diff.view import View
    from agent.observed import ObservedContainer
    from agent.protocol.state import DesiredWorkspace

# A container that restarted and has been up for less than this still counts as crash-looping.
STEADY_AFTER = timedelta(seconds=10)
DISABLED_MESSAGE = "Host is disabled."


def workspace_finding(
    workspace: DesiredWorkspace,
    container: ObservedContainer | None,
    *,
    now: datetime,
    enabled: bool = True,
) -> WorkspaceFinding:
    """What to show when nothing is left to do for this workspace."""
    if container is None:
        message = "" if enabled else DISABLED_MESSAGE
        return finding(workspace, None, status="stopped", message=message)
    status, message = _status(container, now=now)
    if status == "stopped" and not enabled:
        message = DISABLED_MESSAGE
    return finding(workspace, container, status=status, message=message)


def blocked_finding(
    workspace: DesiredWorkspace, container: ObservedContainer | None, *, now: datetime
) -> WorkspaceFinding:
    """Of one that may get no new container: what it is, and why that will not change."""
    if container is None or not container.is_up:
        return finding(workspace, container, status="error", message=workspace.blocked)
    found = workspace_finding(workspace, container, now=now)
    return replace(found, message=f"{found.message} {workspace.blocked}".strip())


def lost_gpus(view: View, workspace: DesiredWorkspace) -> tuple[str, ...]:
    """Cards of this workspace that the host does not have, or has no more."""
    present, wanted = view.knows.gpus, workspace.spec.gpus
    if present is None or wanted is None:
        return ()
    return tuple(sorted(set(wanted.device_ids) - present))


def without_gpus(found: WorkspaceFinding, lost: tuple[str, ...]) -> WorkspaceFinding:
    """A container goes on when its card is gone, and all that it computes there fails."""
    if not lost or found.status != "running":
        return found
    return replace(
        found,
        status="error",
        health="unhealthy",
        message=f"The container runs, but its GPU {', '.join(lost)} is lost: it does not answer "
        "any more. Reset the card or the host, or redeploy to get another one.",
    )


def finding(
    workspace: DesiredWorkspace,
    container: ObservedContainer | None,
    *,
    status: str,
    message: str = "",
) -> WorkspaceFinding:
    if container is None:
        return WorkspaceFinding(
            workspace_id=workspace.id,
            revision=workspace.revision,
            status=status,
            message=message,
        )
    return WorkspaceFinding(
        workspace_id=workspace.id,
        revision=workspace.revision,
        status=status,
        message=message,
        container_id=container.id,
        container_name=container.name,
        started_at=container.started_at,
        restart_count=container.restart_count,
        health=container.health,
        exit_code=None if container.is_up else container.exit_code,
    )


def is_crash_looping(container: ObservedContainer, *, now: datetime) -> bool:
    if container.state == "restarting":
        return True
    if container.state != "running" or not container.restart_count:
        return False
    up = up_for(container, now=now)
    return up is not None and timedelta(0) <= up < STEADY_AFTER


def up_for(container: ObservedContainer, *, now: datetime) -> timedelta | None:
    """None when the engine's time cannot be read; a clock set back shows as negative."""
    text = container.started_at.partition(".")[0].rstrip("Z")
    try:
        return now.replace(tzinfo=None) - datetime.fromisoformat(text)
    except ValueError:
        return None


def _status(container: ObservedContainer, *, now: datetime) -> tuple[str, str]:
    if is_crash_looping(container, now=now):
        return "error", _crash_sentence(container)
    if container.state in {"running", "paused"}:
        if container.health == "starting":
            return "starting", "Waiting for the health check."
        if container.health == "unhealthy":
            return "error", with_tail("The health check fails.", container.health_output)
        return "running", ""
    if container.error:
        return "error", with_tail(f"It could not start: {container.error}", container.log_tail)
    return "stopped", ""


def _crash_sentence(container: ObservedContainer) -> str:
    code = "" if container.exit_code is None else f" with code {container.exit_code}"
    if container.state == "running":
        code = ""
    reason = " (out of memory)" if container.oom_killed else ""
    count = container.restart_count
    times = f"restarted {counted(count, 'time')}" if count else "restarting"
    return with_tail(f"The container keeps exiting{code}{reason}, {times}.", container.log_tail)


def with_tail(sentence: str, tail: str) -> str:
    tail = tail.strip()
    return f"{sentence} Last output: {tail[-1000:]}" if tail else sentence
