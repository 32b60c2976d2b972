"""The agent's image in the server's folder: checked, replaced whole, and handed out by digest."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.session import AgentImages
from hosts.agent_images import store
from hosts.agent_images.store import agent_archives, archive_adopt, data_folder, noted_problem
from hosts.services.enrolment import agent_token_create, enrolment_create, enrolment_redeem
from tests.ground.saved_image import AGENT_NAME, saved_image
from tests.hosts.served import body_of, decoded
from trailer.errors import Invalid

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

    from hosts.models import Host
    from trailer.accounts.models import User

ROUTE = "/api/agent/v1/images"


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.TRAILER_DATA_DIR = tmp_path
    return data_folder()


def adopt(**values: Any) -> store.AgentArchive:
    return archive_adopt(io.BytesIO(saved_image(**values)))


@pytest.mark.parametrize("packed", [True, False])
def test_an_archive_is_kept_compressed_under_its_digest(packed: bool) -> None:
    made = adopt(packed=packed)
    assert (made.architecture, made.image) == ("amd64", AGENT_NAME)
    assert made.path.read_bytes()[:2] == b"\x1f\x8b"
    assert hashlib.sha256(made.path.read_bytes()).hexdigest() == made.digest
    assert agent_archives() == [made]


def test_equal_archives_have_equal_digests() -> None:
    assert adopt().digest == adopt().digest


def test_there_is_one_archive_per_architecture_and_the_newest_replaces_the_others(
    folder: Path,
) -> None:
    old, other = adopt(layer=b"old"), adopt(architecture="arm64")
    (folder / ".new-left-by-a-crash").mkdir()
    with old.path.open("rb") as under_way:
        new = adopt(layer=b"new")
        assert agent_archives() == [new, other]
        # A download of the old one goes on to its end.
        assert hashlib.sha256(under_way.read()).hexdigest() == old.digest
    names = {path.name for path in folder.iterdir()}
    assert names == {"amd64.json", "arm64.json", new.path.name, other.path.name}


def test_an_archive_of_another_version_of_the_server_is_not_handed_out(settings: Any) -> None:
    adopt()
    settings.TRAILER_VERSION = "9.9.9"
    assert agent_archives() == []


def test_what_came_with_the_server_gives_way_to_what_was_put_in(
    settings: Any, tmp_path: Path
) -> None:
    settings.BASE_DIR = tmp_path / "code"
    shipped = adopt(layer=b"shipped")
    data_folder().rename(tmp_path / "made")
    (tmp_path / "code").mkdir()
    (tmp_path / "made").rename(tmp_path / "code" / "agent-images")
    assert [each.digest for each in agent_archives()] == [shipped.digest]
    arm, mine = adopt(architecture="arm64"), adopt(layer=b"mine")
    assert agent_archives() == [mine, arm]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no archive"),
        (b"no archive at all" * 100, "no archive"),
        (saved_image()[:700], "no archive|docker save"),
        (saved_image(packed=True)[:-40], "no archive|docker save"),
        (saved_image(["busybox:latest"]), "named busybox:latest"),
        (saved_image([]), "named nothing"),
        # Loading it would give a name of the host's own another meaning.
        (saved_image([AGENT_NAME, "postgres:17"]), "named postgres:17, trailer.invalid"),
        (saved_image(index=["postgres:17"]), "named postgres:17, trailer.invalid"),
        (saved_image(version="0.0.1"), "version 0.0.1"),
        (saved_image(system="windows"), "windows/amd64"),
        (saved_image(architecture="../../etc"), "linux/../../etc"),
    ],
)
def test_what_is_not_this_agent_alone_is_refused_and_leaves_nothing(
    folder: Path, body: bytes, said: str
) -> None:
    with pytest.raises(Invalid, match=said):
        archive_adopt(io.BytesIO(body))
    assert list(folder.iterdir()) == []


def test_a_problem_is_kept_until_it_is_over() -> None:
    assert noted_problem() == ""
    store.problem_note("No base image.")
    assert noted_problem() == "No base image."
    store.problem_note("")
    assert noted_problem() == ""


# --- over the agents' protocol ---


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_host_that_is_enrolled_and_an_agent_read_the_image(
    client: Client, host: Host, admin: User
) -> None:
    made = adopt(architecture="arm64")
    for token in (enrolment_create(actor=admin, host=host).token, agent_token_create(host)):
        listed = decoded(client.get(ROUTE, headers=bearer(token)), AgentImages)
        [image] = listed.images
        assert (image.image, image.architecture) == (AGENT_NAME, "arm64")
        answer = client.get(f"{ROUTE}/{image.digest}", headers=bearer(token))
        assert answer.headers["ETag"] == f'"{made.digest}"'
        body = body_of(answer)
        assert len(body) == image.size == int(answer.headers["Content-Length"])
        assert hashlib.sha256(body).hexdigest() == image.digest


def test_a_download_goes_on_where_it_broke_off(client: Client, host: Host) -> None:
    made, token = adopt(), agent_token_create(host)
    whole = made.path.read_bytes()

    def get(**headers: str) -> Any:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return client.get(f"{ROUTE}/{made.digest}", headers=bearer(token) | named)

    rest = get(Range="bytes=100-", If_Range=f'"{made.digest}"')
    assert (rest.status_code, body_of(rest)) == (206, whole[100:])
    assert rest.headers["Content-Range"] == f"bytes 100-{made.size - 1}/{made.size}"
    for wanted in ("bytes=0-", "bytes=5-9", f"bytes={made.size}-", "bytes=-5", "lines=1-"):
        answer = get(Range=wanted)
        assert (answer.status_code, body_of(answer)) == (200, whole), wanted
    assert get(Range="bytes=100-", If_Range='"another"').status_code == 200


def test_nobody_else_reads_it_and_guesses_are_counted(
    client: Client, host: Host, admin: User
) -> None:
    made = adopt()
    spent = enrolment_create(actor=admin, host=host).token
    old = enrolment_redeem(spent)[0]
    agent_token_create(host)
    for token in ("", "guess", spent, old):
        assert client.get(ROUTE, headers=bearer(token)).status_code == 401
        refused = client.get(f"{ROUTE}/{made.digest}", headers=bearer(token))
        assert refused.status_code == 401
    statuses = {client.get(ROUTE, headers=bearer("guess")).status_code for _ in range(20)}
    assert statuses == {401, 429}


@pytest.mark.parametrize("digest", ["0" * 64, "amd64", "problem", "x"])
def test_an_image_that_is_not_there_is_a_404_with_a_sentence(
    client: Client, host: Host, digest: str
) -> None:
    adopt()
    answer = client.get(f"{ROUTE}/{digest}", headers=bearer(agent_token_create(host)))
    assert answer.status_code == 404
    assert "new line" in answer.json()["message"]
