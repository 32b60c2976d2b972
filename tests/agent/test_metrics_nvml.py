"""The real nvidia-ml-py on a made-up library: what the agent's process reads of cards."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.ground.gpus import GIB, FakeCard, FakeGpus

_SCRIPT = """
import json, sys
from agent.metrics.gpus import GpuReader
import msgspec
reader = GpuReader()
for line in sys.stdin:
    told = {"inventory": reader.inventory(), "samples": reader.samples()}
    print(json.dumps(msgspec.to_builtins(told)), flush=True)
"""


def test_cards_are_read_by_nvidias_own_library_and_a_lost_one_hides_no_other(
    tmp_path: Path,
) -> None:
    gpus = FakeGpus(tmp_path / "nvml")
    first, second = FakeCard(id="GPU-a"), FakeCard(id="GPU-b", used=2 * GIB, utilization=99)
    gpus.are(first, second)
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, **gpus.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def told() -> dict[str, list[dict[str, object]]]:
            questions.write("\n")
            questions.flush()
            answer: dict[str, list[dict[str, object]]] = json.loads(answers.readline())
            return answer

        before = told()
        assert [(gpu["id"], gpu["index"]) for gpu in before["inventory"]] == [
            ("GPU-a", 0),
            ("GPU-b", 1),
        ]
        assert before["samples"][1] == {
            "id": "GPU-b",
            "utilization_percent": 99.0,
            "memory_bytes": 2 * GIB,
            "memory_total_bytes": 40 * GIB,
            "temperature_celsius": 61.0,
            "power_watts": 251.0,
        }
        gpus.are(FakeCard(id="GPU-a", lost=True), second)
        after = told()
        assert [gpu["id"] for gpu in after["inventory"]] == ["GPU-b"]
        assert [sample["id"] for sample in after["samples"]] == ["GPU-b"]
        questions.close()
