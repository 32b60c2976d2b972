"""How much the longest tests do: what every run needs, or, by `make long`, all of it."""

import os

from tests.ground.faults import Moment

LONG = os.environ.get("TRAILER_TEST_LONG") == "1"

# Who has just heard a reply has either written it down, and is then where the next call finds it,
# or not, and is then where it had heard nothing: the other two moments.
KILL_MOMENTS = tuple(Moment) if LONG else (Moment.BEFORE_FORWARD, Moment.AFTER_EXECUTE)
# The overseer keeps nothing of its own: before a call it is where it was after the one before.
OVERSEER_BEFORE = 9 if LONG else 1
# Every hundredth looks at everything.
IDLE_CYCLES = 1000 if LONG else 200
# One of every kind that the test makes is among the first.
IDLE_WORKSPACES = 50 if LONG else 16
# Opened and closed, four at a time; one that stays shows as well as three.
TERMINALS = 200 if LONG else 80
# Of PostgreSQL and Redis each, while three writers write.
SERVICE_KILLS = 10 if LONG else 1
# Replaces of a database under a writer: one for each kill, or each kill with each cause.
EVERY_CAUSE_WITH_EVERY_KILL = LONG
# A storm of faults and how long they come again, from the first to the last; minutes show more.
TORTURE_STORM_S = 60.0 if LONG else 30.0
TORTURE_S = 1500.0 if LONG else 0.0
