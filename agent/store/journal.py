"""The journal: intent before an act, result after it, and what this agent owns because of it.

After a crash nothing is repeated blindly: the next look decides, with this table of ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from agent import clock
from agent.diff.view import BuildRecord, FailedReplace
from agent.protocol.report import BuildStatus, WorkspaceEvent
from agent.steps import WORKSPACE, Attempt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.store.database import Database

MOST_BUILDS: Final = 500
# In the column `stopped`: by us, and only for as long as its replacement takes to come up.
_TO_REPLACE: Final = 2


@dataclass(frozen=True, kw_only=True)
class JournalView:
    """One consistent reading for the planner."""

    owned_ids: frozenset[str] = frozenset()
    containers: dict[str, str] = field(default_factory=dict)
    stopped_ids: frozenset[str] = frozenset()
    stopped_to_replace: frozenset[str] = frozenset()
    failed_replaces: dict[str, FailedReplace] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)
    builds: dict[str, BuildRecord] = field(default_factory=dict)
    made_images: frozenset[str] = frozenset()
    pulled: dict[str, str] = field(default_factory=dict)
    loose_steps: dict[str, str] = field(default_factory=dict)
    routes: str = ""


@dataclass(frozen=True, kw_only=True)
class Intent:
    id: int
    verb: str
    key: str
    name: str
    event: WorkspaceEvent | None = None


class Journal:
    def __init__(self, database: Database) -> None:
        self._database = database

    def view(self) -> JournalView:
        with self._database.transaction() as connection:
            owned = connection.execute(
                "SELECT engine_id, kind, object_id, stopped FROM owned ORDER BY rowid"
            ).fetchall()
            failed = connection.execute(
                "SELECT workspace_id, mark, revision, message FROM failed_replaces"
            ).fetchall()
            applied = connection.execute("SELECT workspace_id, revision FROM applied").fetchall()
            builds = connection.execute(
                "SELECT build_id, status, message, image_id FROM builds"
            ).fetchall()
            made = connection.execute("SELECT image_id FROM made_images").fetchall()
            pulled = connection.execute(
                "SELECT engine_id, image_id FROM pulled WHERE NOT refused"
            ).fetchall()
            loose = connection.execute(
                "SELECT image_id, COALESCE(ref, '') FROM loose_steps "
                "LEFT JOIN loose_names USING (image_id)"
            ).fetchall()
        routes = self._database.get_meta("routes") or ""
        return JournalView(
            routes=routes,
            owned_ids=frozenset(row[0] for row in owned),
            containers={row[2]: row[0] for row in owned if row[1] == WORKSPACE},
            stopped_ids=frozenset(row[0] for row in owned if row[3]),
            stopped_to_replace=frozenset(row[0] for row in owned if row[3] == _TO_REPLACE),
            failed_replaces={
                row[0]: FailedReplace(attempt=Attempt(row[1], row[2]), message=row[3])
                for row in failed
            },
            applied=dict(applied),
            builds={
                row[0]: BuildRecord(status=row[1], message=row[2], image_id=row[3])
                for row in builds
            },
            made_images=frozenset(row[0] for row in made),
            pulled=dict(pulled),
            loose_steps=dict(loose),
        )

    # --- intents ------------------------------------------------------------------------------

    def intend(
        self, *, key: str, verb: str, name: str, event: WorkspaceEvent | None = None
    ) -> int:
        """`event` is the ledger row the act will cause, so that a crash cannot lose it."""
        with self._database.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO intents (key, verb, name, event, started_at) VALUES (?, ?, ?, ?, ?)",
                (key, verb, name, event and msgspec.json.encode(event), clock.timestamp()),
            )
            return int(cursor.lastrowid or 0)

    def settle(self, intent: int) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM intents WHERE id = ?", (intent,))

    def unfinished(self) -> list[Intent]:
        """What a crash interrupted; looking at the engine decides what it needs."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT id, verb, key, name, event FROM intents ORDER BY id"
            ).fetchall()
        return [
            Intent(
                id=row[0],
                verb=row[1],
                key=row[2],
                name=row[3],
                event=msgspec.json.decode(row[4], type=WorkspaceEvent) if row[4] else None,
            )
            for row in rows
        ]

    # --- ownership ----------------------------------------------------------------------------

    def own(self, engine_id: str, *, kind: str, object_id: str) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO owned (engine_id, kind, object_id) VALUES (?, ?, ?)",
                (engine_id, kind, object_id),
            )

    def containers_of(self, workspace_id: str) -> list[str]:
        """Ids of a workspace's containers, oldest first."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT engine_id FROM owned WHERE kind = ? AND object_id = ? ORDER BY rowid",
                (WORKSPACE, workspace_id),
            ).fetchall()
        return [row[0] for row in rows]

    def disown(self, engine_id: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM owned WHERE engine_id = ?", (engine_id,))

    def forget_absent(
        self,
        kind: str,
        present: frozenset[str],
        *,
        wanted: frozenset[str],
        known: frozenset[str],
    ) -> None:
        """Drop ids whose object is gone, of those that were `known` before the look: what an
        older cycle made meanwhile, that look could not see. The last id of a wanted object stays:
        its absence is drift, and the journal is what tells it from a first deployment."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT engine_id, object_id FROM owned WHERE kind = ?", (kind,)
            ).fetchall()
            alive = {row[1] for row in rows if row[0] in present}
            gone = [
                (row[0],)
                for row in rows
                if row[0] in known - present and (row[1] in alive or row[1] not in wanted)
            ]
            connection.executemany("DELETE FROM owned WHERE engine_id = ?", gone)

    def mark_stopped(self, engine_id: str, *, stopped: bool, to_replace: bool = False) -> None:
        mark = _TO_REPLACE if stopped and to_replace else int(stopped)
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE owned SET stopped = ? WHERE engine_id = ?", (mark, engine_id)
            )

    def run_started(self, engine_id: str) -> None:
        """By us: the engine counts its restarts from here on."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO runs (engine_id, restart_count, started_at) VALUES (?, 0, '') "
                "ON CONFLICT (engine_id) DO UPDATE SET restart_count = 0, started_at = ''",
                (engine_id,),
            )

    def replace_failed(self, workspace_id: str, failed: FailedReplace) -> None:
        """Remembered over a restart of the agent: the same replace again would be an outage."""
        with self._database.transaction(durable=True) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO failed_replaces VALUES (?, ?, ?, ?)",
                (workspace_id, failed.attempt.mark, failed.attempt.revision, failed.message),
            )

    def replace_broken_off(self, workspace_id: str, attempt: Attempt) -> int:
        """Count how often the engine went away over this attempt; an other one begins at 1."""
        with self._database.transaction(durable=True) as connection:
            row = connection.execute(
                "INSERT INTO broken_replaces VALUES (?, ?, 1) ON CONFLICT (workspace_id) "
                "DO UPDATE SET count = iif(mark = excluded.mark, count + 1, 1), "
                "mark = excluded.mark RETURNING count",
                (workspace_id, attempt.mark),
            ).fetchone()
        return int(row[0])

    def forget_failed_replaces(self, workspace_ids: Iterable[str]) -> None:
        gone = [(workspace_id,) for workspace_id in workspace_ids]
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM failed_replaces WHERE workspace_id = ?", gone)
            connection.executemany("DELETE FROM broken_replaces WHERE workspace_id = ?", gone)

    def failed_replace(self, workspace_id: str) -> FailedReplace | None:
        with self._database.transaction() as connection:
            row = connection.execute(
                "SELECT mark, revision, message FROM failed_replaces WHERE workspace_id = ?",
                (workspace_id,),
            ).fetchone()
        return row and FailedReplace(attempt=Attempt(row[0], row[1]), message=row[2])

    def mark_applied(self, workspace_id: str, revision: int) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO applied VALUES (?, ?) "
                "ON CONFLICT (workspace_id) DO UPDATE SET revision = excluded.revision",
                (workspace_id, revision),
            )

    # --- builds -------------------------------------------------------------------------------

    def build_started(self, build_id: str, image_id: str) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO builds (build_id, image_id, status) VALUES (?, ?, ?)",
                (build_id, image_id, "started"),
            )

    def build_ended(self, result: BuildStatus) -> None:
        with self._database.transaction(durable=True) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO builds VALUES (?, ?, ?, ?, ?)",
                (
                    result.build_id,
                    result.image_id,
                    result.status,
                    result.message,
                    msgspec.json.encode(result),
                ),
            )

    def build_result(self, build_id: str) -> BuildStatus | None:
        with self._database.transaction() as connection:
            row = connection.execute(
                "SELECT result FROM builds WHERE build_id = ?", (build_id,)
            ).fetchone()
        if row is None or row[0] is None:
            return None
        return msgspec.json.decode(row[0], type=BuildStatus)

    def forget_builds(self, *, wanted: frozenset[str], most: int = MOST_BUILDS) -> None:
        """How the newest ended stays known, since a commit may outlive its build for long; of the
        others only what the document still names. What has no end yet is never forgotten."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT build_id FROM builds WHERE status != 'started' "
                "ORDER BY rowid DESC LIMIT -1 OFFSET ?",
                (most,),
            ).fetchall()
            old = [row for row in rows if row[0] not in wanted]
            connection.executemany("DELETE FROM builds WHERE build_id = ?", old)

    def was_begun(self, build_id: str) -> bool:
        with self._database.transaction() as connection:
            found = connection.execute("SELECT 1 FROM builds WHERE build_id = ?", (build_id,))
            return found.fetchone() is not None

    def steps_begun(self, image_id: str, *, push_to: str = "") -> None:
        """From now on the engine may die over the containers of this image's build, and either of
        us over the name that it is pushed by."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO loose_steps VALUES (?)", (image_id,))
            if push_to:
                connection.execute(
                    "INSERT OR REPLACE INTO loose_names VALUES (?, ?)", (image_id, push_to)
                )

    def steps_cleared(self, image_id: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM loose_steps WHERE image_id = ?", (image_id,))
            connection.execute("DELETE FROM loose_names WHERE image_id = ?", (image_id,))

    def image_made(self, image_id: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO made_images VALUES (?)", (image_id,))

    # --- pulls --------------------------------------------------------------------------------

    def pulled(self, engine_id: str, image_id: str) -> None:
        """After it the older ones of that image may be asked for again."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE pulled SET refused = 0 WHERE image_id = ?", (image_id,))
            connection.execute(
                "INSERT OR REPLACE INTO pulled (engine_id, image_id) VALUES (?, ?)",
                (engine_id, image_id),
            )

    def pull_refused(self, engine_id: str) -> None:
        """The engine needs it for something that no look shows."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE pulled SET refused = 1 WHERE engine_id = ?", (engine_id,))

    def pulls_gone(self, engine_ids: Iterable[str]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "DELETE FROM pulled WHERE engine_id = ?", [(gone,) for gone in engine_ids]
            )

    def save_routes(self, mark: str) -> None:
        self._database.set_meta("routes", mark)

    def cycle_number(self) -> int:
        return int(self._database.get_meta("cycle") or 0)

    def save_cycle_number(self, number: int) -> None:
        self._database.set_meta("cycle", str(number))
