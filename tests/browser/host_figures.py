"""What hosts report of themselves, for the pages that draw it: figures, cycles, steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent.protocol.metrics import GpuSample, HostSample, Metrics, WorkspaceSample
from agent.protocol.report import CycleReport, StepReport
from agent.protocol.session import Gpu
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.pretend_agent import PretendAgent

GIB = 1024**3


def metrics(cpu: float, workspace: Any = None) -> Metrics:
    use: tuple[WorkspaceSample, ...] = ()
    if workspace is not None:
        use = (
            WorkspaceSample(
                workspace_id=workspace["id"],
                cpu_percent=cpu * 2,
                memory_bytes=GIB,
                memory_limit_bytes=4 * GIB,
                network_rx_rate=5e4,
            ),
        )
    host = HostSample(
        cpu_percent=cpu,
        memory_bytes=4 * GIB,
        memory_total_bytes=16 * GIB,
        disk_used_bytes=97,
        disk_total_bytes=100,
        network_rx_rate=2e6,
        network_tx_rate=1e5,
        load=0.5,
        processes=120,
    )
    gpu = GpuSample(id="GPU-1", utilization_percent=80.0, memory_bytes=GIB, memory_total_bytes=GIB)
    return Metrics(host=host, gpus=(gpu,), workspaces=use)


def sampled(agent: PretendAgent, number: int, cpu: float, workspace: Any = None) -> None:
    """Beat until the host has that many samples: one second keeps one."""

    def enough() -> bool:
        agent.beat(
            metrics=metrics(cpu, workspace),
            gpus=(Gpu(id="GPU-1", name="A100", memory_bytes=40 * GIB),),
            agent_time=datetime.now(UTC).isoformat(),
        )
        return bool(agent.read(f"/hosts/{agent.host['id']}/metrics/")["count"] >= number)

    eventually(enough, 30, interval=0.4)


def drawn(page: Page) -> bool:
    """Whether the first chart's canvas holds anything but nothing."""
    return bool(
        page.evaluate(
            """() => {
              const canvas = document.querySelector(".chart canvas");
              const { width, height } = canvas;
              const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
              return data.some((value) => value !== 0);
            }"""
        )
    )


def cycle(number: int, *steps: StepReport, began: datetime, seconds: float) -> CycleReport:
    return CycleReport(
        seq=0,
        number=number,
        trigger="state",
        started_at=began.isoformat(),
        finished_at=(began + timedelta(seconds=seconds)).isoformat(),
        outcome="ok" if all(step.outcome == "ok" for step in steps) else "partial",
        cleanup="done",
        engine_calls=12,
        steps=steps,
    )


def step(name: str, began: datetime, after: float, took: int, **fields: Any) -> StepReport:
    return StepReport(
        step=name,
        resource="workspace",
        name="web",
        cause="image changed from app:1 to app:2",
        started_at=(began + timedelta(seconds=after)).isoformat(),
        duration_ms=took,
        **{"outcome": "ok", **fields},
    )
