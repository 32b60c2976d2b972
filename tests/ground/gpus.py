"""Made-up GPUs under the real nvidia-ml-py: a tiny libnvidia-ml.so.1 that a file describes."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_nvml.c")
GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class FakeCard:
    id: str
    name: str = "A100"
    used: int = 1 * GIB
    utilization: int = 37
    lost: bool = False

    def line(self) -> str:
        state = "lost" if self.lost else "ok"
        return f"{self.id} {self.name} {40 * GIB} {self.used} {self.utilization} 61 251000 {state}"


class FakeGpus:
    """`env` makes a process find the library; `are` changes the cards while it runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._cards = folder / "cards"
        library = folder / "libnvidia-ml.so.1"
        command = ["gcc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1"]
        subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)

    @property
    def env(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(self._folder), "FAKE_NVML_CARDS": str(self._cards)}

    def are(self, *cards: FakeCard) -> None:
        """At once: a reader sees the old file or the new one."""
        text = "".join(f"{card.line()}\n" for card in cards)
        new = self._folder / "cards.new"
        new.write_text(text)
        new.replace(self._cards)
