"""What has to be true after a storm, when everything is up again."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
from docker.errors import NotFound

from agent.protocol import naming
from tests.e2e.torture_writer import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    import docker

    from tests.e2e.torture_witness import Told
    from tests.e2e.torture_writer import Known

# An agent stamps a row as it tells of it, the engine an event as it happens.
_CLOCKS = 1.0
# Of nobody's workspace, whatever their labels say.
FOREIGN = ("foreign", "trailer-rest")
_NEW_CONTAINER = frozenset({"create", "replace", "heal"})


def rows_of(user: Any, path: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    rows: list[dict[str, Any]] = []
    page = 1
    while True:
        answer = user.get(f"{path}{'&' if '?' in path else '?'}page_size=200&page={page}")
        rows += answer["results"]
        if answer["next"] is None:
            return rows
        page += 1


# --- what was asked for ---


def lost_writes(known: Iterable[Known], rows: list[dict[str, Any]]) -> list[str]:
    """Edits that were acknowledged and are not there, and workspaces that nobody made."""
    by_name = {row["name"]: row for row in rows}
    by_id = {row["id"]: row for row in rows}
    problems = []
    expected = set()
    for one in known:
        row = by_id.get(one.id) if one.id else by_name.get(one.name)
        state = shown(row) if row else None
        if row:
            expected.add(row["id"])
        if not one.allows(state):
            wanted = None if one.deleted else one.state
            problems.append(f"{one.name} is {state}, not {wanted} nor any of {one.maybe}")
    strangers = [row["name"] for row in rows if row["id"] not in expected]
    return problems + [f"{name} was made by nobody" for name in strangers]


def unsettled(rows: list[dict[str, Any]]) -> list[str]:
    """Workspaces that are not what they should be, as the API has them."""
    return [
        f"{row['name']} is {row['status']} at {row['observed_revision']} of {row['revision']}, "
        f"fresh {row['fresh']}, wanted {row['desired_state']}: {row['message']!r}"
        for row in rows
        if row["status"] != row["desired_state"]
        or row["observed_revision"] != row["revision"]
        or not row["fresh"]
        or row["message"]
    ]


def open_builds(rows: list[dict[str, Any]]) -> list[str]:
    """Builds without an end."""
    ends = {"finished", "failed", "cancelled"}
    return [f"a build is still {row['status']}" for row in rows if row["status"] not in ends]


# --- what the engine has ---


def wrong_containers(client: docker.DockerClient, rows: list[dict[str, Any]]) -> list[str]:
    """Containers of ours that should not be, are missing, or are not made as they should be."""
    found = {
        container["Names"][0].lstrip("/"): container
        for container in client.api.containers(all=True)
        if naming.LABEL_WORKSPACE in container["Labels"]
    }
    for name in FOREIGN:
        found.pop(name, None)
    wanted = {row["container_name"]: row for row in rows}
    problems = [f"{name} should not be there" for name in sorted(found.keys() - wanted.keys())]
    for name, row in wanted.items():
        if name not in found:
            if row["desired_state"] == "running":
                problems.append(f"{name} is missing")
            continue
        try:
            seen = client.api.inspect_container(found[name]["Id"])
        except NotFound:
            problems.append(f"{name} went while it was looked at")
            continue
        problems += _differences(seen, row)
    return problems


def _differences(seen: dict[str, Any], row: dict[str, Any]) -> list[str]:
    name, wants = row["container_name"], row["desired_state"]
    states = {"running"} if wants == "running" else {"exited", "created"}
    env = dict(text.partition("=")[::2] for text in seen["Config"]["Env"])
    networks = {f"trailer-{lab}" for lab in row["network_names"]} or {"bridge"}
    pairs = [("id", seen["Id"], row["container_id"])]
    # A stopped one is made anew with its next start.
    if wants == "running":
        pairs += [
            ("MARK", env.get("MARK"), row["env"]["MARK"]),
            ("memory", seen["HostConfig"]["Memory"], row["memory_bytes"] or 0),
            ("networks", set(seen["NetworkSettings"]["Networks"]), networks),
        ]
    problems = [f"{name}: {what} {is_!r}, not {to!r}" for what, is_, to in pairs if is_ != to]
    if seen["State"]["Status"] not in states:
        problems.append(f"{name} is {seen['State']['Status']}, wanted {wants}")
    return problems


# --- the story ---


def ledger(database_url: str) -> dict[str, list[dict[str, Any]]]:
    """Workspace id -> what its agent told, in order."""
    query = (
        "SELECT workspace_id::text, kind, cause, cycle, extract(epoch FROM at)::float,"
        " report_epoch, report_seq FROM workspaces_event WHERE report_epoch IS NOT NULL"
        " ORDER BY at"
    )
    names = ("kind", "cause", "cycle", "at", "epoch", "seq")
    told: dict[str, list[dict[str, Any]]] = {}
    with closing(psycopg.connect(database_url)) as connection:
        for workspace_id, *values in connection.execute(query).fetchall():
            row = dict(zip(names, values, strict=True))
            told.setdefault(workspace_id, []).append(row)
    return told


def doubled(told: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Acts that one cycle told twice."""
    counts = Counter(
        (workspace_id, row["cycle"], row["kind"], row["cause"], row["at"])
        for workspace_id, rows in told.items()
        for row in rows
    )
    return [f"told {count} times: {what}" for what, count in counts.items() if count > 1]


def blamed(told: dict[str, list[dict[str, Any]]], *, engine_died: bool) -> list[str]:
    """Rows that say somebody did by hand what nobody did; a killed engine stops containers."""
    return [
        f"nobody did this by hand: {workspace_id} {row}"
        for workspace_id, rows in told.items()
        for row in rows
        if "outside Trailer" in row["cause"]
        and not (engine_died and row["cause"].startswith("stopped outside Trailer"))
    ]


def taken_up(events: list[Told]) -> dict[str, list[tuple[float, str]]]:
    """Workspace id -> (time of its making, container id) of all that ever had its own name."""
    made: dict[str, float] = {}
    found: dict[str, list[tuple[float, str]]] = {}
    for one in events:
        workspace = one.attributes.get(naming.LABEL_WORKSPACE)
        if one.kind != "container" or not workspace or one.action not in {"create", "rename"}:
            continue
        if one.action == "create":
            made[one.id] = one.at
        known = found.setdefault(workspace, [])
        spare = one.name.endswith("-next") or one.name == naming.spare_container_name(workspace)
        if not spare and all(one.id != container for _, container in known):
            known.append((made.get(one.id, one.at), one.id))
    return found


def untold(events: list[Told], told: dict[str, list[dict[str, Any]]], ids: set[str]) -> list[str]:
    """New containers of living workspaces without a row, and rows without a new container."""
    problems = []
    containers = taken_up(events)
    for workspace_id in ids:
        rows = [row for row in told.get(workspace_id, []) if row["kind"] in _NEW_CONTAINER]
        left = list(rows)
        made = sorted(containers.get(workspace_id, []))
        for at, container in made:
            fitting = next((row for row in left if row["at"] >= at - _CLOCKS), None)
            if fitting is None:
                problems.append(
                    f"container {container[:12]} of {workspace_id}, made at {at:.2f}, is not "
                    f"explained by any of {[(r['kind'], r['cause'], r['at']) for r in rows]}"
                )
            else:
                left.remove(fitting)
        created = sum(
            one.action == "create" and one.attributes.get(naming.LABEL_WORKSPACE) == workspace_id
            for one in events
        )
        claimed = [row for row in rows if row["kind"] != "heal"]
        if len(claimed) > created:
            problems.append(f"{workspace_id}: {len(claimed)} told, {created} made: {claimed}")
    return problems
