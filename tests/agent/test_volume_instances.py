"""What tells one making of a volume from another, as the agent reports it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.plan import ResourceFinding
from agent.protocol import naming
from agent.store.database import Database
from agent.store.journal import Journal
from tests.agent.documents import document, volume

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.bench import Bench

WANTED = document(volumes=(volume(),))


def instance(bench: Bench) -> str:
    (found,) = [f for f in bench.plan(WANTED).findings if isinstance(f, ResourceFinding)]
    assert found.status == "created"
    return found.instance


def test_a_volume_keeps_its_instance_and_one_made_again_has_another(bench: Bench) -> None:
    bench.settle(WANTED)
    first = instance(bench)
    assert len(first) == 32
    assert instance(bench) == first
    bench.runtime.volumes.clear()
    bench.settle(WANTED)
    assert instance(bench) not in (first, "")


def test_an_agent_that_lost_its_journal_reports_the_same_instance(
    bench: Bench, tmp_path: Path
) -> None:
    bench.settle(WANTED)
    first = instance(bench)
    bench.journal = Journal(Database(tmp_path / "new.sqlite3"))
    assert instance(bench) == first


def test_a_creation_whose_answer_was_lost_keeps_the_instance_that_is_there(bench: Bench) -> None:
    create = bench.plan(WANTED).nodes[0].step
    bench.perform(create)
    first = instance(bench)
    bench.perform(create)
    assert instance(bench) == first


def test_a_volume_of_an_older_agent_is_reported_as_unmarked(bench: Bench) -> None:
    bench.settle(WANTED)
    [(name, made)] = bench.runtime.volumes.items()
    labels = {key: text for key, text in made.labels.items() if key != naming.LABEL_INSTANCE}
    bench.runtime.volumes[name] = replace(made, labels=labels)
    assert instance(bench) == "unmarked"
