"""What metrics cost: the agent's time per container and sample, the server's time and storage."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from agent.metrics.cgroups import CgroupReader
from agent.metrics.counters import Counters, Subject, workspace_sample
from tests.bench.table import Row
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED

if TYPE_CHECKING:
    from tests.ground.engine import PrivateEngine

ROUNDS = 20
# Rows that a workspace has at rest, with a heartbeat every 15 s and a week of hours.
ROWS_KEPT = 2 * 3600 // 15 + 48 * 60 + 7 * 24
ROWS_PER_DAY = 24 * 3600 // 15 + 24 * 60 + 24


def sampling_rows(engine: PrivateEngine, containers: int) -> list[Row]:
    """The same files that the agent reads, of containers that run."""
    with closing(engine.client()) as client:
        made = [
            client.containers.run(BUSYBOX, list(RUN_UNTIL_STOPPED), detach=True)
            for _ in range(containers)
        ]
        subjects = []
        for container in made:
            container.reload()
            pid = int(container.attrs["State"]["Pid"])
            made_id = str(container.id)
            subjects.append(Subject(workspace_id="w", container_id=made_id, pid=pid, run=made_id))
    reader, process = CgroupReader(), psutil.Process()
    before: dict[str, Counters] = {}
    begun, started = process.cpu_times(), time.perf_counter()
    for _ in range(ROUNDS):
        for subject in subjects:
            counters = reader.read(subject)
            assert counters is not None, "the containers' files cannot be seen"
            known = before.get(subject.container_id)
            workspace_sample(subject, known, counters, memory_total=2**34)
            before[subject.container_id] = counters
    ended = process.cpu_times()
    used = ended.user + ended.system - begun.user - begun.system
    each = used * 1000 / ROUNDS / containers
    whole = (time.perf_counter() - started) * 1000 / ROUNDS
    return [
        Row("metrics: agent's CPU per container and sample", each, "ms", 1.0),
        Row(f"metrics: one sample of {containers} containers", whole, "ms"),
    ]


def storage_rows() -> list[Row]:
    """SQLite pages of the table of workspaces' samples, with its index."""
    rows = 20_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.sqlite3"
        with closing(sqlite3.connect(path)) as database:
            database.execute(
                "CREATE TABLE s (resolution smallint unsigned NOT NULL, at bigint NOT NULL,"
                " workspace_id char(32) NOT NULL, cpu_percent real, memory_bytes bigint,"
                " memory_limit_bytes bigint, disk_read_rate bigint, disk_write_rate bigint,"
                " network_rx_rate bigint, network_tx_rate bigint, processes integer,"
                " PRIMARY KEY (workspace_id, resolution, at))"
            )
            database.executemany(
                "INSERT INTO s VALUES (0, ?, ?, 12.34, 123456789, 1073741824, 0, 4096, 150000,"
                " 90000, 12)",
                ((1_900_000_000 + n, f"{n % 50:032x}") for n in range(rows)),
            )
            database.commit()
            database.execute("VACUUM")
        each = path.stat().st_size / rows
    kept = each * ROWS_KEPT / 1024
    return [
        Row("metrics: storage of a sample", each, "bytes"),
        Row("metrics: storage written per workspace and day", each * ROWS_PER_DAY / 1024, "KiB"),
        Row("metrics: storage kept per workspace, at rest", kept, "KiB", 1024.0),
    ]
