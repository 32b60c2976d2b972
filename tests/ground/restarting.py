"""`python -m tests.ground.restarting <command …>`: runs the command, and again after it ended.

The containers of deploy/compose.yaml have `restart: unless-stopped`. Celery's worker needs that:
it ends with "Unrecoverable error" when its broker is lost again while it gives back what it had
not acknowledged.
"""

import signal
import subprocess
import sys
import threading

from tests.ground import process

_PAUSE = 1.0


def main(command: list[str]) -> None:
    """Return when SIGTERM or SIGINT came; the command has ended then, too."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.is_set():
        child = subprocess.Popen(["setpriv", "--pdeathsig", "SIGKILL", *command])
        while child.poll() is None and not stopped.wait(0.1):
            pass
        process.stop(child, timeout=10)
        stopped.wait(_PAUSE)


if __name__ == "__main__":
    main(sys.argv[1:])
