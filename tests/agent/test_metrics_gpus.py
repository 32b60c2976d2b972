"""GPUs: listed and measured where there are any, and never an error where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent import clock
from agent.metrics.gpus import GpuReader
from tests.agent.fake_nvml import MIB, FakeNvml

if TYPE_CHECKING:
    import pytest


def test_gpus_are_listed_and_measured_with_what_they_can_tell() -> None:
    nvml = FakeNvml()
    reader = GpuReader(nvml)
    assert [(gpu.id, gpu.name, gpu.index) for gpu in reader.inventory() or ()] == [
        ("GPU-0", "A100", 0),
        ("GPU-1", "A100", 1),
    ]
    sample = reader.samples()[1]
    assert (sample.id, sample.utilization_percent, sample.power_watts) == ("GPU-1", 97.0, None)
    assert (sample.memory_bytes, sample.memory_total_bytes) == (10 * MIB, 40 * MIB)
    assert sample.temperature_celsius == 61.0
    assert nvml.opened == 1


def test_a_driver_that_comes_later_is_found_and_a_lost_one_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: seconds[0])
    nvml = FakeNvml(installed=False)
    reader = GpuReader(nvml)
    assert (reader.inventory(), reader.samples()) == (None, ())
    nvml.installed = True
    assert reader.samples() == ()
    seconds[0] += 61
    assert len(reader.samples()) == 2
    nvml.broken = True
    assert reader.samples() == ()
    nvml.broken = False
    seconds[0] += 61
    assert len(reader.samples()) == 2
    assert nvml.opened == 2
