"""Golden wire documents: both sides read them for ever. Files may be added, never edited."""

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.protocol import metrics, report, session, sessions, state
from agent.protocol.report import Report, WorkspaceStatus
from agent.protocol.state import HostState, decode_state, encode_state

FOLDER = Path(__file__).parent / "v1"
DOCUMENTS = sorted(FOLDER.glob("*.json"))
MESSAGES: dict[str, type[msgspec.Struct]] = {
    name: kind
    for module in (metrics, report, session, sessions, state)
    for name, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, msgspec.Struct)
}


def type_of(path: Path) -> type[msgspec.Struct]:
    return MESSAGES[path.name.partition(".")[0]]


def contains(whole: Any, part: Any) -> bool:
    """Everything in `part` is in `whole`; the whole may have more fields."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return (
            isinstance(whole, list)
            and len(whole) == len(part)
            and all(contains(a, b) for a, b in zip(whole, part, strict=True))
        )
    return bool(whole == part)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_golden_document_can_be_read(path: Path) -> None:
    msgspec.json.decode(path.read_bytes(), type=type_of(path))


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if "newer" not in path.stem], ids=lambda path: path.stem
)
def test_what_was_read_is_written_with_the_same_names_and_values(path: Path) -> None:
    golden = json.loads(path.read_bytes())
    message = msgspec.json.decode(path.read_bytes(), type=type_of(path))
    assert contains(json.loads(msgspec.json.encode(message)), golden)


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if "full" in path.stem], ids=lambda path: path.stem
)
def test_a_full_document_reads_back_equal(path: Path) -> None:
    message = msgspec.json.decode(path.read_bytes(), type=type_of(path))
    assert msgspec.json.decode(msgspec.json.encode(message), type=type_of(path)) == message


def test_the_full_documents_name_every_field_there_is() -> None:
    """A new field needs a golden document of its own: this one shows which."""

    def names(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {n for item in value.values() for n in names(item)}
        if isinstance(value, list):
            return {n for item in value for n in names(item)}
        return set()

    written: set[str] = set()
    for path in DOCUMENTS:
        written |= names(json.loads(path.read_bytes()))
    for kind in MESSAGES.values():
        encoded = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert encoded <= written, f"{kind.__name__}: {sorted(encoded - written)}"


def test_a_document_of_a_newer_server_keeps_what_is_understood() -> None:
    newer = decode_state((FOLDER / "HostState.newer.json").read_bytes())
    assert newer.settings.enabled is False
    assert newer.workspaces[0].desired_state == "hibernated"
    assert newer.workspaces[0].spec.name == "web"


def test_a_document_with_a_wrong_type_anywhere_is_refused_whole() -> None:
    golden = json.loads((FOLDER / "HostState.full.json").read_bytes())
    golden["workspaces"][0]["spec"]["memory_bytes"] = "512m"
    with pytest.raises(msgspec.ValidationError, match="workspaces"):
        decode_state(json.dumps(golden).encode())


def test_equal_states_have_equal_bytes() -> None:
    body = (FOLDER / "HostState.full.json").read_bytes()
    shuffled = json.dumps(dict(reversed(json.loads(body).items()))).encode()
    assert encode_state(decode_state(body)) == encode_state(decode_state(shuffled))


def test_missing_fields_mean_their_defaults() -> None:
    minimal = msgspec.json.decode((FOLDER / "HostState.minimal.json").read_bytes(), type=HostState)
    assert minimal.settings.reconcile_interval == 10.0
    items = msgspec.json.decode((FOLDER / "Report.minimal.json").read_bytes(), type=Report).items
    assert isinstance(items[0], WorkspaceStatus)
    assert items[0].exit_code is None
