"""`python -m tests.bench [--quick]`: Trailer's speed as ratios against the raw engine, in one run.

The goals stand beside the figures. Only ratios travel from one machine to another.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from tests.bench.build_logs import build_rows
from tests.bench.channels import channel_rows
from tests.bench.cost import idle_rows
from tests.bench.endless_output import endless_rows
from tests.bench.planning import planning_rows
from tests.bench.polls import poll_rows
from tests.bench.product import ProductBench
from tests.bench.raw import RawEngine
from tests.bench.relay import relay_rows
from tests.bench.samples import sampling_rows, storage_rows
from tests.bench.sessions import session_rows
from tests.bench.stack_polls import stack_rows
from tests.bench.table import Row, render
from tests.bench.web import web_rows
from tests.ground.engine import PrivateEngine
from tests.ground.hostnet import sweep_leftovers
from tests.ground.images import ensure_images
from tests.ground.proxy import DockerApiProxy
from tests.ground.server import RunningTrailer

if TYPE_CHECKING:
    from collections.abc import Callable

AT_REST = 100
ALONE = {
    "planning": planning_rows,
    "stacks": stack_rows,
    "channels": channel_rows,
    "web": web_rows,
}
ON_AN_ENGINE = ("product", "builds", "output", "sessions", "relay", "idle", "metrics")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rougher figures")
    parser.add_argument("--only", choices=[*ALONE, *ON_AN_ENGINE], help="one part")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for title, run in ALONE.items():
        if options.only in (None, title):
            rows += _part(title, run)
    if options.only in (None, *ON_AN_ENGINE):
        rows += _on_an_engine(quick=options.quick, only=options.only)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    sys.stdout.write(f"\n{render(rows)}\n\n{os.cpu_count()} cores, load {load}\n")
    return 0


def _part(title: str, run: Callable[[], list[Row]]) -> list[Row]:
    """Its rows are shown at once: a later part that fails takes nothing away."""
    sys.stderr.write(f"{title} …\n")
    rows = run()
    sys.stderr.write(f"{render(rows)}\n")
    return rows


def _on_an_engine(*, quick: bool, only: str | None) -> list[Row]:
    sweep_leftovers()
    engine = PrivateEngine().create()
    try:
        with closing(engine.client()) as client:
            ensure_images(client)
        rows: list[Row] = []
        if only in (None, "product"):
            rows += _part("product", lambda: _product(engine, quick=quick))
            engine.clean()
        if only in (None, "builds", "output"):
            rows += _builds(engine, quick=quick, only=only)
            engine.clean()
        if only in (None, "sessions"):
            rows += _part("sessions", lambda: _sessions(engine, quick=quick))
            engine.clean()
        if only in (None, "relay"):
            rows += _part("relay", lambda: _relay(engine, quick=quick))
            engine.clean()
        if only in (None, "idle"):
            rows += _part("idle", lambda: _idle(engine, quick=quick))
            engine.clean()
        if only in (None, "metrics"):
            number = 20 if quick else 100
            rows += _part("metrics", lambda: sampling_rows(engine, number) + storage_rows())
        return rows
    finally:
        engine.destroy()


def _product(engine: PrivateEngine, *, quick: bool) -> list[Row]:
    raw, trailer = RawEngine(engine), RunningTrailer(engine.url)
    try:
        bench = ProductBench(trailer.start(), raw)
        rows = [
            bench.deploy(1, rounds=3 if quick else 10, goal=1.5),
            bench.deploy(10, rounds=2 if quick else 5, goal=1.5),
            bench.deploy(50, rounds=1 if quick else 3, goal=1.15),
            bench.deploy(100, rounds=1 if quick else 2, goal=1.15),
        ]
        others = bench.post_all([f"w{number}" for number in range(10)])
        for workspace in others:
            bench.user.wait_for(workspace, "running", timeout=60)
        rounds = 5 if quick else 20
        rows.append(bench.change(others[0], rounds))
        rows += bench.drift(others[1], rounds)
        return [*rows, *poll_rows(trailer, bench.user, 3 if quick else 10)]
    finally:
        trailer.destroy()
        raw.close()


def _builds(engine: PrivateEngine, *, quick: bool, only: str | None) -> list[Row]:
    trailer = RunningTrailer(engine.url)
    try:
        trailer.start()
        rows: list[Row] = []
        if only in (None, "builds"):
            rows += _part("builds", lambda: build_rows(engine, trailer, quick=quick))
        if only in (None, "output"):
            rows += _part("output", lambda: endless_rows(trailer, 15 if quick else 300))
        return rows
    finally:
        trailer.destroy()


def _sessions(engine: PrivateEngine, *, quick: bool) -> list[Row]:
    trailer = RunningTrailer(engine.url)
    try:
        return session_rows(engine, trailer.start(), quick=quick)
    finally:
        trailer.destroy()


def _relay(engine: PrivateEngine, *, quick: bool) -> list[Row]:
    trailer = RunningTrailer(engine.url)
    try:
        return relay_rows(engine, trailer.start(), quick=quick)
    finally:
        trailer.destroy()


def _idle(engine: PrivateEngine, *, quick: bool) -> list[Row]:
    """Through the proxy that counts: its own cost would be unfair to the other figures."""
    raw = RawEngine(engine)
    proxy = DockerApiProxy(engine.socket, engine.folder / "bench.sock").start()
    trailer = RunningTrailer(proxy.url)
    try:
        bench = ProductBench(trailer.start(), raw)
        made = bench.post_all([f"w{number}" for number in range(AT_REST)])
        for workspace in made:
            bench.user.wait_for(workspace, "running", timeout=120)
        return idle_rows(trailer, proxy, 20 if quick else 45)
    finally:
        trailer.destroy()
        proxy.stop()
        raw.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
