"""What metrics cost: the agent's time per container and sample, the server's time and storage."""

from __future__ import annotations

import os
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
_BEGIN = 1_900_000_000
# A busy one; columns that are not named here hold a 0.
_SAMPLE = {
    "cpu_percent": 12.34,
    "memory_bytes": 123_456_789,
    "memory_limit_bytes": 2**30,
    "disk_write_rate": 4096,
    "network_rx_rate": 150_000,
    "network_tx_rate": 90_000,
    "processes": 12,
    "connections": 2.0,
}


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
        reader.forget_all_but({subject.container_id for subject in subjects})
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
    """SQLite pages of the table of workspaces' samples, as its model has it, with its index."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trailer.settings")
    import django  # noqa: PLC0415 - after the measurements that need no server

    django.setup()
    from django.db import connection  # noqa: PLC0415

    from workspaces.models import WorkspaceSample  # noqa: PLC0415

    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        editor.create_model(WorkspaceSample)
    columns = [f.column for f in WorkspaceSample._meta.concrete_fields if f.column]
    values = ", ".join(f":{column}" for column in columns)
    table = WorkspaceSample._meta.db_table
    rows = 20_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.sqlite3"
        with closing(sqlite3.connect(path)) as database:
            database.executescript("\n".join(editor.collected_sql))
            database.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})",  # noqa: S608
                (
                    {**dict.fromkeys(columns, 0), **_SAMPLE, "at": _BEGIN + n}
                    | {"workspace_id": f"{n % 50:032x}"}
                    for n in range(rows)
                ),
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
