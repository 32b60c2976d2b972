"""Ends all processes of one process session, seen from the host or from inside a container.

A session's number stays taken while it has members. So once its leader is gone, a process with
the leader's own number is somebody else's, and nothing is touched.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from agent import clock

_PROC: Final = Path("/proc")
# Long enough for a shell to write its history.
_HANGUP_PATIENCE: Final = 0.5
_KILL_PATIENCE: Final = 2.0
_LOOK: Final = 0.02

# Shell builtins only: the image may hold no other program. Says how many it found.
SCRIPT: Final = """
wanted=$1 number=$2 leader=$3 found=0
if [ "$leader" != alive ] && [ -e "/proc/$wanted" ]; then echo 0; exit; fi
for file in /proc/[0-9]*/stat; do
  { read -r line <"$file"; } 2>/dev/null || continue
  set -- ${line##*) }
  [ "$4" = "$wanted" ] || continue
  [ "$1" = Z ] && continue
  pid=${file#/proc/}
  kill -s "$number" "${pid%/stat}" 2>/dev/null
  found=$((found + 1))
done
echo $found
"""


def is_in_container(pid: int, container_id: str) -> bool:
    """Whether this process can see that one, and it belongs to the container."""
    try:
        return container_id in (_PROC / str(pid) / "cgroup").read_text()
    except OSError:
        return False


def end_session(leader: int, container_id: str, *, leader_lives: bool) -> bool:
    """True once nobody of the session is left."""
    if not leader_lives and is_in_container(leader, container_id):
        return True
    for number, patience in ((signal.SIGHUP, _HANGUP_PATIENCE), (signal.SIGKILL, _KILL_PATIENCE)):
        deadline = clock.monotonic() + patience
        _signal(members(leader, container_id), number)
        while remaining := members(leader, container_id):
            if clock.monotonic() >= deadline:
                break
            if number == signal.SIGKILL:
                # A process may have forked between the look and the signal.
                _signal(remaining, number)
            clock.sleep(_LOOK)
        else:
            return True
    return False


def members(leader: int, container_id: str) -> list[int]:
    """Processes of the session that still run; zombies only wait for their parent."""
    found = []
    for folder in _PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            stat = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue
        state, _, _, session, *_ = stat.rpartition(") ")[2].split()
        pid = int(folder.name)
        if int(session) == leader and state != "Z" and is_in_container(pid, container_id):
            found.append(pid)
    return found


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
