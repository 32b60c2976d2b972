"""Which identity an agent starts with: a line that is pasted anew counts, a spent one does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent.config import Config
from agent.enrolment import enrolled
from agent.errors import ConfigError, ServerError, ServerUnavailable
from agent.protocol.session import EnrolReply, EnrolRequest
from agent.store.database import Database
from agent.store.document import load_document, save_document
from agent.store.identity import Identity, save_identity
from tests.agent.documents import document, workspace

if TYPE_CHECKING:
    from pathlib import Path


class Server:
    """`hosts`: enrolment token → host. Each is taken once."""

    def __init__(self, **hosts: str) -> None:
        self.hosts, self.asked, self.away = dict(hosts), 0, False

    def redeem(self, request: EnrolRequest) -> EnrolReply:
        self.asked += 1
        if self.away:
            raise ServerUnavailable("The server cannot be reached.")
        host = self.hosts.pop(request.token, "")
        if not host:
            raise ServerError("This enrolment token is unknown, used or expired.")
        return EnrolReply(
            token=f"agent-{self.asked}", host_id=host, host_name=host, host_key=f"key of {host}"
        )


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(server_url="http://server", state_dir=tmp_path)


def test_a_restart_with_the_spent_token_asks_nobody(config: Config) -> None:
    server = Server(first="north")
    config = replace(config, enrolment_token="first")
    identity = enrolled(config, server.redeem)
    server.away = True
    assert enrolled(config, server.redeem) == identity
    assert enrolled(replace(config, enrolment_token=""), server.redeem) == identity
    assert server.asked == 1


def test_a_line_pasted_anew_replaces_a_credential_that_was_shut_out(config: Config) -> None:
    server = Server(first="north", second="north")
    old = enrolled(replace(config, enrolment_token="first"), server.redeem)
    save_document(config.state_dir, document())
    new = enrolled(replace(config, enrolment_token="second"), server.redeem)
    assert (new.host_id, new.token) == ("north", "agent-2")
    assert new.token != old.token
    # The same host: what it knows of its containers stays.
    assert load_document(config.state_dir) is not None


def test_another_hosts_line_makes_it_that_host_and_nothing_of_the_old_one_is_its_own(
    config: Config,
) -> None:
    server = Server(first="north", second="south")
    enrolled(replace(config, enrolment_token="first"), server.redeem)
    save_document(config.state_dir, document(workspaces=(workspace(),)))
    journal = Database(config.state_dir / "agent.sqlite3")
    journal.set_meta("newest", "4 90")
    journal.close()
    (config.state_dir / "policy.toml").write_text("")
    assert enrolled(replace(config, enrolment_token="second"), server.redeem).host_id == "south"
    assert load_document(config.state_dir) is None
    assert Database(config.state_dir / "agent.sqlite3").get_meta("newest") is None
    assert (config.state_dir / "policy.toml").exists()


def test_a_new_line_that_is_worth_nothing_never_runs_as_the_old_host(config: Config) -> None:
    server = Server(first="north")
    enrolled(replace(config, enrolment_token="first"), server.redeem)
    with pytest.raises(ServerError, match="used or expired"):
        enrolled(replace(config, enrolment_token="expired"), server.redeem)
    server.away = True
    with pytest.raises(ServerUnavailable):
        enrolled(replace(config, enrolment_token="expired"), server.redeem)


def test_an_identity_of_an_earlier_version_goes_on_with_its_spent_token(config: Config) -> None:
    known = Identity(token="agent-0", host_id="north", host_key="key", host_name="north")
    save_identity(config.state_dir, known)
    config, server = replace(config, enrolment_token="spent"), Server(fresh="south")
    server.away = True
    assert enrolled(config, server.redeem) == known
    server.away = False
    assert enrolled(config, server.redeem).token == "agent-0"
    assert enrolled(config, server.redeem).token == "agent-0"
    assert server.asked == 2
    fresh = replace(config, enrolment_token="fresh")
    assert enrolled(fresh, server.redeem).host_id == "south"


def test_an_identity_of_an_earlier_version_can_be_replaced_by_a_new_line(config: Config) -> None:
    save_identity(config.state_dir, Identity(token="agent-0", host_id="north", host_key="key"))
    server = Server(fresh="north")
    config = replace(config, enrolment_token="fresh")
    assert enrolled(config, server.redeem).token == "agent-1"


def test_without_identity_and_token_it_says_what_to_do(config: Config) -> None:
    with pytest.raises(ConfigError, match="Enrol the host"):
        enrolled(config, Server().redeem)
