"""The spec on the container: what an upgrade of agent or server may never do."""

import msgspec

from agent.diff.stored import changes_since, read_stored, spec_labels
from agent.protocol import naming
from agent.protocol.spec import SPEC_FORMAT, WorkspaceSpec

SPEC = WorkspaceSpec(name="web", image_ref="busybox:1", env={"A": "1"}, secret_env={"S": "x"})
KEY = "key"


def labels(spec: WorkspaceSpec = SPEC, *, revision: int = 1) -> dict[str, str]:
    return spec_labels(spec, revision=revision, host_key=KEY)


def changed(known: dict[str, str], wanted: WorkspaceSpec, *, revision: int = 1) -> list[str]:
    changes = changes_since(
        read_stored(known), wanted, revision=revision, host_key=KEY, router_mode="none"
    )
    return [change.field for change in changes]


def without(known: dict[str, str], *fields: str) -> dict[str, str]:
    """The label as an older agent wrote it, which did not know these fields."""
    raw = msgspec.json.decode(known[naming.LABEL_SPEC])
    for name in fields:
        del raw[name]
    return {**known, naming.LABEL_SPEC: msgspec.json.encode(raw).decode()}


def test_the_same_spec_shows_no_change() -> None:
    assert changed(labels(), SPEC) == []


def test_a_secret_is_kept_as_a_keyed_digest_and_its_change_is_seen() -> None:
    assert "x" not in msgspec.json.decode(labels()[naming.LABEL_SPEC])["secret_env"].values()
    other = msgspec.structs.replace(SPEC, secret_env={"S": "y"})
    assert changed(labels(), other) == ["secret_env"]


def test_a_field_the_older_label_does_not_know_recreates_nothing() -> None:
    wanted = msgspec.structs.replace(SPEC, shm_bytes=2**20, generation=3)
    assert changed(without(labels(), "shm_bytes", "generation"), wanted) == []


def test_an_edit_of_a_field_the_older_label_does_not_know_is_seen() -> None:
    wanted = msgspec.structs.replace(SPEC, shm_bytes=2**20)
    assert changed(without(labels(), "shm_bytes"), wanted, revision=2) == ["shm_bytes"]


def test_fields_a_newer_agent_wrote_are_ignored() -> None:
    raw = msgspec.json.decode(labels()[naming.LABEL_SPEC])
    raw["hologram"] = True
    known = {**labels(), naming.LABEL_SPEC: msgspec.json.encode(raw).decode()}
    assert changed(known, SPEC) == []


def test_a_label_in_a_newer_format_or_in_pieces_recreates_nothing() -> None:
    wanted = msgspec.structs.replace(SPEC, env={"A": "2"})
    newer = {**labels(), naming.LABEL_SPEC_FORMAT: str(SPEC_FORMAT + 1)}
    assert changed(newer, wanted) == []
    assert changed({**labels(), naming.LABEL_SPEC: "{broken"}, wanted) == []
    assert changed({}, wanted) == []


def test_name_and_networks_are_left_to_inspect() -> None:
    wanted = msgspec.structs.replace(SPEC, name="shop", network_ids=("n1",))
    assert changed(labels(), wanted, revision=2) == []
