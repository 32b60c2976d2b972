"""What it costs to look at 200 stacks at once: time, and how many git processes there are.

`python -m tests.bench.stack_polls` is the part that runs with a database of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING

import psutil

from tests.bench.table import Row
from tests.ground.gitserver import GitServer

if TYPE_CHECKING:
    from tests.ground.gitserver import GitRepository

STACKS = 200
WORKERS = 4
FILE = "services: {web: {image: busybox}}\n"


def stack_rows() -> list[Row]:
    git = GitServer().start()
    try:
        with tempfile.TemporaryDirectory(prefix="trailer-bench-") as folder:
            done = subprocess.run(
                [sys.executable, "-m", "tests.bench.stack_polls", _repository(git).url],
                env={
                    **os.environ,
                    "TRAILER_DATA_DIR": folder,
                    "TRAILER_GIT_ALLOW": git.allow,
                    "DATABASE_URL": f"sqlite:///{folder}/bench.sqlite3",
                    "DJANGO_SETTINGS_MODULE": "trailer.settings",
                },
                capture_output=True,
                text=True,
                check=True,
                timeout=600,
            )
    finally:
        git.destroy()
    seen = json.loads(done.stdout.splitlines()[-1])
    # One more was asked to learn the commit that counts as deployed.
    asked = len([line for line in git.requests if "info/refs" in line]) - 1
    return [
        Row(f"{STACKS} unchanged stacks polled at once", seen["seconds"], "s", 60.0),
        Row("git at once while they are polled", seen["most"], "processes", seen["allowed"]),
        Row("questions to the git server per stack", asked / STACKS, "", 1.0),
    ]


def _repository(git: GitServer) -> GitRepository:
    repository = git.repository("bench")
    repository.commit({"trailer.yml": FILE})
    return repository


def main(url: str) -> None:
    import django  # noqa: PLC0415 - settings come from this process's own environment

    django.setup()
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from tests.factories import make_host, make_stack, make_user  # noqa: PLC0415
    from workspaces.stacks.models import Stack  # noqa: PLC0415
    from workspaces.stacks.sync.engine import work_once  # noqa: PLC0415
    from workspaces.stacks.sync.repository import newest_commit  # noqa: PLC0415

    call_command("migrate", interactive=False, verbosity=0)
    owner, host = make_user(), make_host()
    for _ in range(STACKS):
        make_stack(host, owner)
    Stack.objects.update(repository=url)
    head = newest_commit(Stack.objects.all()[0]).id
    Stack.objects.update(deployed_commit=head, available_commit=head, poll_at=timezone.now())
    most, ended = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        own = psutil.Process()
        while not ended.wait(0.02):
            children = own.children()
            most = max(most, len(children))

    def work() -> None:
        while work_once():
            pass
        connections.close_all()

    watcher = threading.Thread(target=watch)
    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    begun = time.monotonic()
    watcher.start()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - begun
    ended.set()
    watcher.join()
    assert not Stack.objects.filter(checked_at=None).exists(), "not every stack was looked at"
    allowed = settings.TRAILER_STACK_PARALLEL
    sys.stdout.write(json.dumps({"seconds": seconds, "most": most, "allowed": allowed}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
