"""What depends on the database, once more on PostgreSQL: samples, the audit, races."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "tests/hosts/test_metrics_record.py",
    "tests/hosts/test_metrics_rollup.py",
    "tests/images/test_delete_race.py",
    "tests/trailer/test_audit.py",
    "tests/trailer/test_audit_forgery.py",
    "tests/trailer/test_audit_seals.py",
    "tests/workspaces/stacks/test_race.py",
    "tests/workspaces/test_delete_race.py",
    "tests/trailer/test_transfer.py::test_of_hand_overs_at_once_one_is_carried_out",
    "tests/workspaces/stacks/test_transfer.py::test_everything_that_is_the_stacks_goes_along",
    "tests/workspaces/test_quotas.py::test_parallel_requests_do_not_slip_past_a_quota",
)


def test_samples_and_quotas_hold_on_postgresql(postgres_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *FILES],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
