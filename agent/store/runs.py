"""What of each container's ends is told already, over a restart of the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.ends import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.store.database import Database

_HEARD = "engine_events_at"


class Runs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self) -> dict[str, Run]:
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT engine_id, restart_count, started_at, ended_at FROM runs"
            ).fetchall()
        return {
            row[0]: Run(restart_count=row[1], started_at=row[2], ended_at=row[3]) for row in rows
        }

    def save(self, runs: Mapping[str, Run]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)",
                [
                    (engine_id, run.restart_count, run.started_at, run.ended_at)
                    for engine_id, run in runs.items()
                ],
            )

    def forget(self, engine_ids: frozenset[str]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "DELETE FROM runs WHERE engine_id = ?", [(gone,) for gone in engine_ids]
            )

    def heard_until(self) -> int:
        """Engine's time of the newest event when an end was told last."""
        return int(self._database.get_meta(_HEARD) or 0)

    def save_heard(self, at: int) -> None:
        self._database.set_meta(_HEARD, str(at))
