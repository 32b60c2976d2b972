"""Signals, also many at once and in the middle of each other, do what they are for."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# An event that another thread waits for, as the agent's loops do: `set` takes its lock.
PROGRAM = """
import signal, sys, threading
from agent.signals import on_signals

asked, over, count = threading.Event(), threading.Event(), 0
def loop():
    global count
    while True:
        asked.wait()
        asked.clear()
        count += 1
        if count == 1:
            print("heard", flush=True)
on_signals({signal.SIGUSR1: asked.set, signal.SIGTERM: over.set, signal.SIGINT: over.set})
threading.Thread(target=loop, daemon=True).start()
print("ready", flush=True)
over.wait()
print("over", flush=True)
"""


def test_a_flood_of_signals_stops_neither_the_work_nor_the_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(50_000):
                os.kill(process.pid, signal.SIGUSR1)
            assert process.stdout.readline() == "heard\n"
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                os.kill(process.pid, number)
            assert process.stdout.readline() == "over\n"
            # By itself, or by the last signal, which an interpreter that ends no longer handles.
            assert process.wait(20) in {0, -signal.SIGTERM, -signal.SIGINT}
        finally:
            process.kill()


def test_each_signal_has_its_own_action() -> None:
    program = (
        "import signal, time; from agent.signals import on_signals\n"
        "on_signals({number: lambda n=number: print(n.name, flush=True)"
        " for number in (signal.SIGUSR1, signal.SIGUSR2)})\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        # Whatever goes wrong, reading ends.
        guard = threading.Timer(20, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            process.stdout.readline()
            os.kill(process.pid, signal.SIGUSR2)
            assert process.stdout.readline() == "SIGUSR2\n"
            os.kill(process.pid, signal.SIGUSR1)
            assert process.stdout.readline() == "SIGUSR1\n"
        finally:
            guard.cancel()
            process.kill()
