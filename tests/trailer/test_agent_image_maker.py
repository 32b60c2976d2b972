"""The agent's image that a standalone server makes: once, by the first way that works."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hosts.agent_images.offer import agent_offer
from hosts.agent_images.store import agent_archives, archive_adopt, is_being_made, noted_problem
from tests.ground.saved_image import saved_image
from trailer.standalone import agent_image
from trailer.standalone.agent_image import AgentImageMaker, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MACHINE = "amd64"


@pytest.fixture(autouse=True)
def server(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TRAILER_DATA_DIR = tmp_path
    settings.TRAILER_AGENT_BASE = "python:3.12-slim"
    monkeypatch.setattr("hosts.agent_images.store.platform.machine", lambda: "x86_64")


class Maker(AgentImageMaker):
    """`refused`: what its ways say, in their order; the first that says nothing works."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.tried: list[str] = []
        self._refused = list(refused)

    def _on_the_engine(self, base: str, made_from: str) -> Any:
        return self._way("engine", made_from)

    def _of_this_python(self, base: str, made_from: str) -> Any:
        return self._way("python", made_from)

    def _way(self, name: str, made_from: str) -> Any:
        self.tried.append(name)
        assert is_being_made()
        if self._refused and (why := self._refused.pop(0)):
            raise agent_image._Failed(why)
        return archive_adopt(io.BytesIO(saved_image()), made_from=made_from)


def test_the_engine_makes_it_and_a_second_start_makes_nothing() -> None:
    maker = Maker()
    assert maker.make() is not None
    assert maker.make() is None
    assert maker.tried == ["engine"]
    assert not is_being_made()
    assert agent_offer().problem == ""


def test_without_a_base_image_it_is_made_of_the_servers_own_python() -> None:
    maker = Maker("python:3.12-slim could not be pulled.")
    assert maker.make() is not None
    assert maker.tried == ["engine", "python"]
    assert noted_problem() == ""


def test_when_no_way_works_the_dialog_says_what_each_one_lacks() -> None:
    assert Maker("No engine answers.", "There is no ldd.").make() is None
    offer = agent_offer()
    assert "No engine answers. There is no ldd. Set TRAILER_AGENT_IMAGE" in offer.problem
    assert Maker().make() is not None
    assert agent_offer().problem == ""


def test_meanwhile_the_dialog_says_that_it_is_being_made() -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Maker):
        def _on_the_engine(self, base: str, made_from: str) -> Any:
            inside.set()
            assert go_on.wait(20)
            return super()._on_the_engine(base, made_from)

    maker = Slow()
    maker.start()
    assert inside.wait(20)
    assert "is being made on this server" in agent_offer().problem
    go_on.set()
    maker._thread.join(20)
    assert agent_offer().digests.keys() == {MACHINE}


@pytest.mark.parametrize(
    "name", ["TRAILER_AGENT_BASE", "TRAILER_AGENT_IMAGE"], ids=["no-base", "registry"]
)
def test_none_is_made_where_the_settings_want_none(name: str, settings: Any) -> None:
    setattr(settings, name, "" if name == "TRAILER_AGENT_BASE" else "registry.invalid/agent:1")
    maker = Maker()
    assert maker.make() is None
    assert maker.tried == []


def test_one_that_an_operator_put_in_stays(settings: Any) -> None:
    mine = archive_adopt(io.BytesIO(saved_image(layer=b"by hand")))
    maker = Maker()
    assert maker.make() is None
    assert (maker.tried, agent_archives()) == ([], [mine])


def test_one_for_another_machine_does_not_count() -> None:
    other = archive_adopt(io.BytesIO(saved_image(architecture="arm64")))
    assert Maker().make() is not None
    assert other in agent_archives()


def test_another_base_is_a_reason_to_make_it_again(settings: Any) -> None:
    maker = Maker()
    maker.make()
    settings.TRAILER_AGENT_BASE = "registry.invalid/python:3.13"
    assert maker.make() is not None
    assert fingerprint("a") != fingerprint("b")


def test_what_a_process_says_last_is_the_reason(settings: Any) -> None:
    maker = AgentImageMaker()

    def python(*words: str) -> str:
        with pytest.raises(agent_image._Failed) as caught:
            maker._python(words)
        return str(caught.value)

    assert python("-c", "import sys; sys.exit('first\\nThe base is away.')") == "The base is away."
    assert python("-c", "import sys; sys.exit(4)") == "It ended with exit code 4."


def test_a_stop_ends_what_is_under_way_and_notes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()

    class Long(AgentImageMaker):
        def _on_the_engine(self, base: str, made_from: str) -> Any:
            began.set()
            self._python(["-c", "import time; time.sleep(60)"])

        def _python(self, words: Sequence[str], output: int = -3) -> None:
            super()._python(words, output)

    maker = Long()
    maker.start()
    assert began.wait(20)
    while maker._process is None:
        began.wait(0.01)
    maker.stop()
    assert not maker._thread.is_alive()
    assert noted_problem() == ""
    assert not is_being_made()
