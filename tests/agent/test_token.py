"""The agent's token is replaced while it works: stored first, and nobody is ever locked out."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent.config import Config
from agent.errors import Revoked
from agent.health import HealthFile, read_note
from agent.overseer.validate import validate
from agent.overseer.wanted import wanted_order
from agent.server.http import HttpServer
from agent.server.socket import ServerSocket
from agent.store import token as token_store
from agent.store.identity import Identity, identity_path, load_identity, save_identity
from agent.store.token import EARLIER_KEPT, StoredToken
from tests.agent.documents import workspace
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN
from tests.agent.running import Running, reaches
from tests.agent.test_server_client import Nudger
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch


def stored(folder: Path) -> Identity:
    identity = load_identity(folder)
    assert identity is not None
    return identity


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    identity = Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY, enrolled_with="mark")
    save_identity(tmp_path, identity)
    return identity


@pytest.fixture
def nudger() -> Iterator[Nudger]:
    nudger = Nudger()
    yield nudger
    nudger.server.shutdown()


# --- the whole agent ---


def test_a_due_token_is_replaced_and_nothing_that_runs_notices(
    fake_server: FakeServer, launch: Launch, tmp_path: Path
) -> None:
    fake_server.desire(workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    fake_server.token_due = True
    eventually(lambda: fake_server.tokens == ["agent-token-1"], 10, "the new token is not used")
    assert (stored(tmp_path).token, stored(tmp_path).earlier) == ("agent-token-1", (TOKEN,))
    assert stored(tmp_path).host_key == HOST_KEY
    beats = len(fake_server.book.heartbeats)
    eventually(lambda: len(fake_server.book.heartbeats) > beats + 1, 10, "it fell silent")
    # What signs labels is not the token: the container of before is still its own.
    fake_server.desire(workspaces=(workspace(revision=2),))
    reaches(fake_server, "running", revision=2)
    assert fake_server.book.sessions == 1


def test_lost_answers_cost_nothing_and_the_next_one_counts(
    fake_server: FakeServer, launch: Launch, tmp_path: Path
) -> None:
    fake_server.lose_new_tokens = fake_server.token_due = True
    running = launch()
    eventually(lambda: fake_server.book.requests.count("POST /token") >= 2, 10)
    assert (stored(tmp_path).token, running.code) == (TOKEN, None)
    fake_server.lose_new_tokens = False
    eventually(lambda: len(fake_server.tokens) == 1 and TOKEN not in fake_server.tokens, 10)
    assert stored(tmp_path).token == fake_server.tokens[0]
    assert fake_server.refused == []


def test_an_agent_that_died_before_it_used_the_new_token_starts_with_it(
    fake_server: FakeServer, launch: Launch, tmp_path: Path, identity: Identity
) -> None:
    fake_server.tokens = [TOKEN, "agent-token-1"]
    assert StoredToken(tmp_path, identity).replace("agent-token-1")
    launch()
    eventually(lambda: fake_server.tokens == ["agent-token-1"], 10)
    assert fake_server.refused == []


def test_an_agent_that_died_before_it_stored_the_new_token_gets_another(
    fake_server: FakeServer, launch: Launch, identity: Identity
) -> None:
    fake_server.tokens, fake_server.token_due = [TOKEN, "nobody-has-it"], True
    launch()
    eventually(lambda: fake_server.tokens == ["agent-token-1"], 10)


def test_a_disk_that_takes_nothing_leaves_the_old_token_in_use(
    fake_server: FakeServer, launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    launch()
    eventually(lambda: bool(fake_server.book.heartbeats), 10)
    monkeypatch.setattr(token_store, "save_identity", full)
    fake_server.token_due = True
    eventually(lambda: fake_server.book.requests.count("POST /token") >= 2, 10)
    assert (fake_server.tokens[0], stored(tmp_path).token) == (TOKEN, TOKEN)
    monkeypatch.undo()
    eventually(lambda: TOKEN not in fake_server.tokens, 10)


def test_a_server_restored_from_a_backup_is_shown_the_token_that_it_knew(
    fake_server: FakeServer, launch: Launch, tmp_path: Path, identity: Identity
) -> None:
    keeper = StoredToken(tmp_path, identity)
    for number in range(1, 5):
        assert keeper.replace(f"agent-token-{number}")
    fake_server.tokens = ["agent-token-2"]
    launch()
    eventually(lambda: bool(fake_server.book.heartbeats), 10, "it was locked out")
    assert stored(tmp_path).token == "agent-token-2"
    # Whoever takes the restore back finds an agent that still has the newest one.
    fake_server.tokens = ["agent-token-4"]
    beats = len(fake_server.book.heartbeats)
    eventually(lambda: len(fake_server.book.heartbeats) > beats, 10)
    assert stored(tmp_path).token == "agent-token-4"


def test_of_two_agents_with_one_token_one_goes_on_and_the_other_is_told_to_enrol(
    fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    for folder in (tmp_path, copy):
        save_identity(folder, Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY))
    first = Running(fake_server, runtime, tmp_path)
    eventually(lambda: bool(fake_server.book.heartbeats), 10)
    fake_server.token_due = True
    eventually(lambda: fake_server.tokens == ["agent-token-1"], 10)
    with pytest.raises(Revoked, match="unauthorized"):
        HttpServer(fake_server.url, token=StoredToken(copy, stored(copy))).check()
    beats = len(fake_server.book.heartbeats)
    eventually(lambda: len(fake_server.book.heartbeats) > beats, 10)
    assert first.stop() == 0


# --- those that share the state folder ---


def test_a_trial_follows_a_token_that_is_replaced_meanwhile(
    fake_server: FakeServer, tmp_path: Path, identity: Identity
) -> None:
    fake_server.desire()
    stop, health = threading.Event(), tmp_path / "health.json"
    trial = StoredToken(tmp_path, identity, writes=False)
    thread = threading.Thread(
        target=validate,
        args=(HttpServer(fake_server.url, token=trial),),
        kwargs={
            "host_id": HOST_ID,
            "engine_answers": lambda: None,
            "health": HealthFile(health),
            "stop": stop,
        },
    )
    StoredToken(tmp_path, identity).replace("agent-token-1")
    fake_server.tokens = ["agent-token-1"]
    thread.start()
    try:
        eventually(lambda: (note := read_note(health)) is not None and note.signed_in, 10)
    finally:
        stop.set()
        thread.join(10)


def test_the_overseer_asks_with_the_token_of_the_moment(
    fake_server: FakeServer, tmp_path: Path, identity: Identity
) -> None:
    fake_server.settings = msgspec.structs.replace(fake_server.settings, agent_image="agent:2")
    fake_server.desire()
    StoredToken(tmp_path, identity).replace("agent-token-1")
    fake_server.tokens = [TOKEN]
    order = wanted_order(Config(server_url=fake_server.url, state_dir=tmp_path))
    assert order is not None
    assert order.image == "agent:2"
    # It may change nothing: the agent at work decides what the file holds.
    assert stored(tmp_path).token == "agent-token-1"


def test_an_agent_that_is_overtaken_does_not_write_over_the_newer_token(
    tmp_path: Path, identity: Identity
) -> None:
    slow, fast = StoredToken(tmp_path, identity), StoredToken(tmp_path, identity)
    assert fast.replace("of-the-fast-one")
    assert not slow.replace("of-the-slow-one")
    assert stored(tmp_path).token == "of-the-fast-one"
    assert slow.current() == TOKEN
    assert slow.after_refusal(TOKEN, lambda token: token == "of-the-fast-one") == "of-the-fast-one"


def test_a_folder_that_was_given_to_another_host_lends_it_no_token(
    tmp_path: Path, identity: Identity
) -> None:
    keeper = StoredToken(tmp_path, identity)
    save_identity(tmp_path, Identity(token="other", host_id="other", host_key="k"))
    assert not keeper.replace("new")
    assert keeper.after_refusal(TOKEN, lambda token: True) == ""
    assert stored(tmp_path).token == "other"


# --- the file ---


def test_the_new_token_is_on_the_disk_before_it_is_shown(
    tmp_path: Path, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, shown = StoredToken(tmp_path, identity), []

    def save(folder: Path, new: Identity) -> None:
        shown.append(keeper.current())
        save_identity(folder, new)

    monkeypatch.setattr(token_store, "save_identity", save)
    assert keeper.replace("new")
    assert (shown, keeper.current(), stored(tmp_path).token) == ([TOKEN], "new", "new")
    assert stored(tmp_path).enrolled_with == "mark"
    assert identity_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_tokens_of_two_months_are_kept_and_no_more(tmp_path: Path, identity: Identity) -> None:
    keeper = StoredToken(tmp_path, identity)
    for number in range(EARLIER_KEPT + 5):
        keeper.replace(f"t{number}")
    earlier = stored(tmp_path).earlier
    assert (len(earlier), earlier[0], earlier[-1]) == (60, "t63", "t4")


def test_a_server_that_knows_none_is_not_asked_about_all_of_them_again_at_once(
    tmp_path: Path, identity: Identity
) -> None:
    keeper, asked = StoredToken(tmp_path, identity), []

    def is_known(token: str) -> bool | None:
        asked.append(token)
        return False

    keeper.replace("t1")
    keeper.replace("t2")
    assert [keeper.after_refusal("t2", is_known) for _ in range(3)] == ["", "", ""]
    assert asked == ["t1", TOKEN]
    # One that gives no clear answer is asked again.
    other = StoredToken(tmp_path, stored(tmp_path))
    assert other.after_refusal("t2", lambda token: None) == ""
    assert other.after_refusal("t2", lambda token: token == TOKEN) == TOKEN


def test_a_shut_out_agent_says_so_and_keeps_its_file(
    fake_server: FakeServer, tmp_path: Path, identity: Identity
) -> None:
    client = HttpServer(fake_server.url, token=StoredToken(tmp_path, identity))
    fake_server.tokens = []
    with pytest.raises(Revoked):
        client.check()
    assert stored(tmp_path).token == TOKEN


def test_an_identity_of_an_older_agent_reads_and_an_older_agent_reads_the_new_one(
    tmp_path: Path, identity: Identity
) -> None:
    class Before(msgspec.Struct, frozen=True, kw_only=True):
        token: str
        host_id: str
        host_key: str

    StoredToken(tmp_path, identity).replace("new")
    old = msgspec.json.decode(identity_path(tmp_path).read_bytes(), type=Before)
    assert (old.token, old.host_key) == ("new", HOST_KEY)
    identity_path(tmp_path).write_bytes(msgspec.json.encode(old))
    assert stored(tmp_path).earlier == ()


# --- the socket ---


def test_an_open_socket_is_told_the_new_token_and_stays(nudger: Nudger) -> None:
    stop, token = threading.Event(), [TOKEN]
    told: list[str | bytes] = []
    nudger.on_frame = told.append
    socket = ServerSocket(
        f"http://127.0.0.1:{nudger.port}",
        token=lambda: token[0],
        epoch=lambda: 7,
        on_nudge=lambda: None,
        stop=stop,
    )
    thread = threading.Thread(target=socket.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: len(nudger.connections) == 1)
        token[0] = "new"
        eventually(lambda: told == ['{"token": "new"}'], 5, "it was not told")
        always(lambda: len(nudger.connections) == 1, 1.2, "the socket was opened anew")
        assert len(told) == 1
    finally:
        stop.set()
        thread.join(5)


def test_a_document_is_read_with_the_first_token_that_works(
    fake_server: FakeServer, tmp_path: Path, identity: Identity
) -> None:
    fake_server.desire()
    keeper = StoredToken(tmp_path, identity)
    keeper.replace("forgotten")
    client = HttpServer(fake_server.url, token=keeper)
    assert client.fetch_state(epoch=0, etag="") is not None
    assert client.token() == TOKEN
