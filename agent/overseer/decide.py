"""The overseer's next act, from what it sees and remembers; pure.

Every act leaves a state from which a process without memory ends with one working agent: the old
one until the new one has proved itself, the new one from then on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent.overseer.world import Act, Memory, Phase, World

FIRST_PAUSE: Final = 10.0
LONGEST_PAUSE: Final = 3600.0
# On the way back to the old agent, which does not run until the last of them.
_REVIVING: Final = frozenset({Act.REMOVE_CURRENT, Act.RENAME_BACK, Act.START_CURRENT})


def decide(world: World, memory: Memory, *, is_needed: bool = True) -> Act:
    """`is_needed`: something about the running agent still differs from what is wanted."""
    if memory.phase is Phase.VALIDATE:
        return _validate(world, memory)
    if memory.phase is Phase.SWAP:
        return _swap(world, memory)
    return _recover(world, memory, is_needed=is_needed)


def _recover(world: World, memory: Memory, *, is_needed: bool) -> Act:
    """First put in order what an interrupted or failed try left behind."""
    if world.next is not None:
        return Act.REMOVE_NEXT
    if world.previous is not None:
        return _settle(world, memory)
    current = world.current
    if current is None:
        return Act.GIVE_UP
    if not current.running:
        interrupted = memory.stopped_by_us or not memory.failures
        return Act.START_CURRENT if interrupted else Act.GIVE_UP
    if current.made_by == memory.own_id or memory.committed:
        return Act.FINISH
    if memory.failures and not is_needed:
        # The order was taken back meanwhile.
        return Act.FINISH
    if memory.must_pause:
        return Act.PAUSE
    return Act.PULL


def _settle(world: World, memory: Memory) -> Act:
    """Two agents in the names: the new one if it works, else the one before."""
    if world.current is None:
        return Act.RENAME_BACK
    if memory.roll_back:
        return Act.REMOVE_CURRENT
    if not world.current.ever_started:
        # What another process made may lack its networks.
        return Act.START_CURRENT if memory.phase is Phase.SWAP else Act.REMOVE_CURRENT
    if not memory.is_current_healthy:
        return Act.WATCH_CURRENT
    return Act.REMOVE_PREVIOUS


def _validate(world: World, memory: Memory) -> Act:
    if memory.fulfilled:
        return Act.FINISH
    if world.next is None:
        return Act.CREATE_NEXT
    if not world.next.ever_started:
        return Act.START_NEXT
    return Act.REMOVE_VALIDATED if memory.is_next_healthy else Act.WATCH_NEXT


def _swap(world: World, memory: Memory) -> Act:
    if world.previous is None:
        if world.current is None:
            return Act.GIVE_UP
        if world.current.made_by == memory.own_id:
            return Act.FINISH
        return Act.STOP_CURRENT if world.current.running else Act.RENAME_TO_PREVIOUS
    if world.current is None:
        return Act.CREATE_CURRENT
    return _settle(world, memory)


def after(memory: Memory, act: Act, *, succeeded: bool) -> Memory:
    """What is remembered of an act. A failed one ends the try; the next begins with recovery."""
    if not succeeded:
        return replace(
            memory,
            phase=Phase.RECOVER,
            failures=memory.failures + 1,
            must_pause=True,
            pulled=False,
            is_next_healthy=False,
            is_current_healthy=False,
            # The answer may have been lost after the deed was done.
            stopped_by_us=memory.stopped_by_us or memory.phase is Phase.SWAP or act in _REVIVING,
            roll_back=memory.roll_back or memory.phase is Phase.SWAP or act is Act.WATCH_CURRENT,
        )
    match act:
        case Act.PULL:
            return replace(memory, phase=Phase.VALIDATE, pulled=True, is_next_healthy=False)
        case Act.WATCH_NEXT:
            return replace(memory, is_next_healthy=True)
        case Act.REMOVE_VALIDATED:
            return replace(memory, phase=Phase.SWAP, roll_back=False)
        case Act.STOP_CURRENT:
            return replace(memory, stopped_by_us=True, is_current_healthy=False)
        case Act.WATCH_CURRENT:
            return replace(memory, is_current_healthy=True)
        case Act.REMOVE_PREVIOUS:
            return replace(memory, phase=Phase.RECOVER, committed=True)
        case Act.RENAME_BACK:
            return replace(memory, stopped_by_us=True, roll_back=False)
        case Act.START_CURRENT:
            return replace(memory, stopped_by_us=False)
        case Act.PAUSE:
            return replace(memory, must_pause=False)
        case _:
            return memory


def pause_seconds(failures: int) -> float:
    """10 s, then twice as long each time, an hour at most, for ever."""
    doublings = min(max(0, failures - 1), 20)
    return min(LONGEST_PAUSE, FIRST_PAUSE * float(2**doublings))
