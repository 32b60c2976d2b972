"""What a signal asks for is done in a thread of its own.

Not in its handler: that may run in the middle of anything the main thread does, also of the
handler before it, and the locks of `threading`, an Event's too, wait for themselves there.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def on_signals(actions: Mapping[signal.Signals, Callable[[], object]]) -> None:
    """Call from the main thread. Signals that come faster than they are answered may be one."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    # Written by the interpreter's own handler, in C: one byte, the signal's number.
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in actions:
        signal.signal(number, _nothing)

    def answer() -> None:
        while received := os.read(read_end, 4096):
            for number in dict.fromkeys(received):
                if action := actions.get(signal.Signals(number)):
                    action()

    threading.Thread(target=answer, name="signals", daemon=True).start()


def _nothing(*_: object) -> None:
    """Without a handler the signal would end the process."""
