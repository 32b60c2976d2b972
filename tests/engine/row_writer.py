"""Writes rows into a workspace's PostgreSQL, one after the other, and notes each one that the
server acknowledged. A process of its own, because containers are reached only from the network of
their host: `python -m tests.engine.row_writer <engine> <workspace> <file of numbers>`."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

import docker
import psycopg
import requests

from agent.protocol import naming

PAUSE = 0.005
_RETRY = 0.05


def addresses(engine: docker.DockerClient, workspace: str) -> list[str]:
    """Of its running containers, the one that others would be led to first."""
    found = engine.api.containers(filters={"label": f"{naming.LABEL_WORKSPACE}={workspace}"})
    found.sort(key=lambda row: row["Names"][0])
    return [
        place["IPAddress"]
        for row in found
        for place in row["NetworkSettings"]["Networks"].values()
        if place["IPAddress"]
    ]


def write(address: str, acknowledged: list[int], notes: Path) -> None:
    """Until the server refuses or goes away."""
    with (
        psycopg.connect(
            host=address, user="postgres", connect_timeout=2, autocommit=True, sslmode="disable"
        ) as connection,
        notes.open("a") as file,
    ):
        connection.execute("CREATE TABLE IF NOT EXISTS noted (n bigint PRIMARY KEY)")
        while True:
            # A number is used once: of one that got no answer nobody knows.
            acknowledged[0] += 1
            connection.execute("INSERT INTO noted VALUES (%s)", [acknowledged[0]])
            file.write(f"{acknowledged[0]}\n")
            file.flush()
            time.sleep(PAUSE)


def main() -> None:
    url, workspace, notes = sys.argv[1:]
    engine = docker.DockerClient(base_url=url, version="1.41", timeout=5)
    last = [0]
    while True:
        with suppress(psycopg.Error, docker.errors.DockerException, requests.RequestException):
            for address in addresses(engine, workspace):
                with suppress(psycopg.OperationalError):
                    write(address, last, Path(notes))
        time.sleep(_RETRY)


if __name__ == "__main__":
    main()
