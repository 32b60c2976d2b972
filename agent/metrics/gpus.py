"""GPUs by NVIDIA's library; a machine without it, or without the driver, simply has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pynvml

from agent import clock
from agent.protocol.metrics import GpuSample
from agent.protocol.session import Gpu

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# A driver may be installed while the agent runs: that is found out, but not at every beat.
_LOOK_AGAIN = 60.0


class GpuReader:
    """The library stays open between beats: opening it can wake a sleeping card."""

    def __init__(self, library: Any = pynvml) -> None:
        self._nvml = library
        self._open = False
        self._closed_until = 0.0

    def inventory(self) -> tuple[Gpu, ...] | None:
        """The cards that answer; None when nobody can tell, which is not the same as none."""
        return self._each(self._gpu)

    def samples(self) -> tuple[GpuSample, ...]:
        return self._each(self._sample) or ()

    def _each(self, read: Callable[[int, Any], T]) -> tuple[T, ...] | None:
        if not self._opened():
            return None
        nvml = self._nvml
        try:
            found = (self._answered(read, index) for index in range(nvml.nvmlDeviceGetCount()))
            return tuple(value for value in found if value is not None)
        except nvml.NVMLError:
            self._close()
            return None

    def _answered(self, read: Callable[[int, Any], T], index: int) -> T | None:
        """A card that fell off the bus: the others are as they were."""
        try:
            return read(index, self._nvml.nvmlDeviceGetHandleByIndex(index))
        except self._nvml.NVMLError_GpuIsLost:
            return None

    def _opened(self) -> bool:
        if self._open:
            return True
        if clock.monotonic() < self._closed_until:
            return False
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError:
            self._closed_until = clock.monotonic() + _LOOK_AGAIN
            return False
        self._open = True
        return True

    def _close(self) -> None:
        """A driver that was taken away or reset: begin anew."""
        self._open = False
        self._closed_until = clock.monotonic() + _LOOK_AGAIN
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return

    def _gpu(self, index: int, handle: Any) -> Gpu:
        nvml = self._nvml
        return Gpu(
            id=_text(nvml.nvmlDeviceGetUUID(handle)),
            name=_text(nvml.nvmlDeviceGetName(handle)),
            memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            index=index,
        )

    def _sample(self, index: int, handle: Any) -> GpuSample:
        nvml = self._nvml
        memory = self._told(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        use = self._told(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        heat = self._told(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        power = self._told(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return GpuSample(
            id=_text(nvml.nvmlDeviceGetUUID(handle)),
            utilization_percent=None if use is None else float(use.gpu),
            memory_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            temperature_celsius=None if heat is None else float(heat),
            # The library speaks of milliwatts.
            power_watts=None if power is None else round(power / 1000, 1),
        )

    def _told(self, ask: Callable[[], T]) -> T | None:
        """Cards differ in what they can tell; one that cannot is not broken."""
        try:
            return ask()
        except self._nvml.NVMLError_NotSupported:
            return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
