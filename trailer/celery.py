"""The Celery app and its schedule; Redis in production, inside the process in standalone."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trailer.settings")

app = Celery("trailer", task_cls="trailer.counters:CountedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_schedule = {
    "prune-expired": {"task": "accounts.prune_expired", "schedule": 3600.0},
    "mark-silent-hosts": {"task": "workspaces.mark_silent_hosts", "schedule": 5.0},
    "roll-up-metrics": {"task": "workspaces.roll_up_metrics", "schedule": 60.0},
    "work-stacks": {"task": "stacks.work", "schedule": 1.0},
    "run-timers": {"task": "workspaces.run_timers", "schedule": 20.0},
    "prune-events": {"task": "workspaces.prune_events", "schedule": 3600.0},
    "end-rights": {"task": "workspaces.end_rights", "schedule": 5.0},
    "order-maintenance": {"task": "hosts.order_maintenance", "schedule": 20.0},
    "advance-rollouts": {"task": "hosts.advance_rollouts", "schedule": 5.0},
    "seal-audit": {"task": "audit.seal", "schedule": 60.0},
    # Daily: the lease says whether a day has passed.
    "verify-audit": {"task": "audit.verify", "schedule": 3600.0},
    "retry-failed-pulls": {"task": "images.retry_failed_pulls", "schedule": 2.5},
}
