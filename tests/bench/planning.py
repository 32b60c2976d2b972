"""How long planning takes, and how it grows with the number of workspaces; no engine needed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from agent.planner import make_plan
from agent.runtime.port import Look
from tests.agent.bench import Bench
from tests.agent.documents import NOW, document, network, workspace
from tests.bench.table import Row

SIZES = (10, 50, 100, 300)
ROUNDS = 15


def planning_rows() -> list[Row]:
    quiet = {size: _milliseconds(size, changed=0) for size in SIZES}
    busy = {size: _milliseconds(size, changed=size) for size in SIZES}
    small, large = SIZES[0], SIZES[-1]
    growth = (quiet[large] / quiet[small]) / (large / small)
    return [
        *(Row(f"plan, {size} workspaces at rest", quiet[size], "ms") for size in SIZES),
        *(Row(f"plan, {size} workspaces all changed", busy[size], "ms") for size in SIZES),
        Row(f"growth of planning from {small} to {large}", growth, "× linear", 1.5),
    ]


def _milliseconds(size: int, *, changed: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        networks = (network("lan"),)
        wanted = [
            workspace(f"w{n}", env={"N": str(n)}, network_ids=("n-lan",)) for n in range(size)
        ]
        bench.settle(document(workspaces=tuple(wanted), networks=networks))
        for n in range(changed):
            wanted[n] = workspace(f"w{n}", env={"N": f"{n}!"}, network_ids=("n-lan",), revision=2)
        desired = document(workspaces=tuple(wanted), networks=networks, version=2)
        observed, knows = bench.runtime.observe(Look()), bench.knows()
        times = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            make_plan(desired, observed, knows, now=NOW)
            times.append(time.perf_counter() - begun)
        # The least disturbed round: planning itself never varies.
        return min(times) * 1000
