"""As much of NVIDIA's library as the agent uses, with cards that a test makes up."""

from __future__ import annotations

from types import SimpleNamespace

MIB = 1024 * 1024


class FakeNvml:
    """`broken` makes every question fail."""

    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    class NVMLError_NotSupported(NVMLError):  # noqa: N801  as the library calls it
        pass

    class NVMLError_GpuIsLost(NVMLError):  # noqa: N801
        pass

    def __init__(self, cards: int = 2, *, installed: bool = True) -> None:
        self.cards = cards
        self.installed = installed
        self.broken = False
        self.opened = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.installed:
            raise self.NVMLError("Library Not Found")
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if self.broken:
            raise self.NVMLError("GPU is lost")
        return self.cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:  # noqa: N802
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "A100"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=10 * MIB, total=40 * MIB)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:  # noqa: N802
        return 61

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        raise self.NVMLError_NotSupported("Not Supported")
