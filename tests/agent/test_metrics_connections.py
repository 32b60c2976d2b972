"""Connections of containers: read when the number of sockets moves, and never for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent import clock
from agent.metrics import texts
from agent.metrics.connections import ConnectionReader
from tests.agent.test_metrics_texts import TCP

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SOCKSTAT = "sockets: used 9\nTCP: inuse {} orphan 0 tw 0 alloc 5 mem 0\nUDP: inuse 0 mem 0\n"


def container(folder: Path, sockets: int, table: str = TCP) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "sockstat").write_text(SOCKSTAT.format(sockets))
    (folder / "tcp").write_text(table)
    return folder


def test_sockets_of_both_families_are_added_and_rubbish_is_unknown() -> None:
    assert texts.sockets_in_use(SOCKSTAT.format(3), "TCP6: inuse 2\n") == 5
    assert texts.sockets_in_use("", "TCP: inuse\n".replace("inuse", "used")) is None


def test_a_table_is_read_again_when_the_number_of_sockets_has_moved(tmp_path: Path) -> None:
    reader, net = ConnectionReader(), container(tmp_path / "net", 2)
    assert reader.read("c", net) == 1
    # Whatever the table says by now: as many sockets as before are the same ones.
    container(net, 2, table="")
    assert reader.read("c", net) == 1
    container(net, 1, table="")
    assert reader.read("c", net) == 0


def test_what_a_sample_has_no_time_for_is_read_with_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr(clock, "monotonic", lambda: float(next(seconds)) / 10)
    reader = ConnectionReader()
    first, second = container(tmp_path / "a", 2), container(tmp_path / "b", 2)
    reader.begin({"a", "b"})
    assert (reader.read("a", first), reader.read("b", second)) == (1, None)
    reader.begin({"a", "b"})
    assert (reader.read("a", first), reader.read("b", second)) == (1, 1)
    reader.begin({"a"})
    assert reader.read("gone", tmp_path / "gone") is None
