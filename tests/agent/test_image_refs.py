"""The one parser of image references, compared with what the reference implementation answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocol import image_refs

# Its `origin` says which implementation, at which version, gave these answers.
TABLE: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("image_references.json").read_text()
)["spellings"]
NAMES = [row for row in TABLE if row.get("server")]
REFUSED = [row["text"] for row in TABLE if row.get("refused")]
IDS = [row for row in TABLE if "id" in row]
# It takes these for a name without any server: nothing could be fetched, and no credential fits.
NO_SERVER = [row["text"] for row in TABLE if row.get("server") == ""]
SHA = "sha256:" + "a1" * 32


def test_the_table_is_large_and_every_row_is_looked_at() -> None:
    assert len(NAMES) + len(REFUSED) + len(IDS) + len(NO_SERVER) == len(TABLE) > 300
    assert NO_SERVER == ["my_registry.example.com/app"]


@pytest.mark.parametrize("row", NAMES, ids=lambda row: ascii(row["text"])[:80])
def test_a_name_is_split_as_the_reference_implementation_splits_it(row: dict[str, Any]) -> None:
    found = image_refs.parse(row["text"])
    assert (found.server, found.path) == (row["server"], row["path"])
    assert (found.tag, found.digest) == (row["tag"], row["digest"])
    suffix = f"@{found.digest}" if found.digest else f":{found.tag or 'latest'}"
    assert found.full_name + suffix == row["full"]
    assert found.familiar_name + suffix == row["familiar"]


@pytest.mark.parametrize("row", NAMES, ids=lambda row: ascii(row["text"])[:80])
def test_the_normal_form_is_the_familiar_one_unless_that_means_another_image(
    row: dict[str, Any],
) -> None:
    normal = image_refs.normal(row["text"])
    means_the_same = image_refs.find(row["familiar"]) == image_refs.find(row["full"])
    is_like_an_id = re.match(r"docker.io/library/(sha256|[0-9a-f]{64})[:@]", row["full"])
    short = row["familiar"] if means_the_same and not is_like_an_id else row["full"]
    assert normal == short
    again = image_refs.parse(normal)
    assert (again.server, again.path) == (row["server"], row["path"])
    assert image_refs.server_of(row["text"]) == row["server"]


@pytest.mark.parametrize("text", [*REFUSED, *NO_SERVER], ids=lambda text: ascii(text)[:80])
def test_what_the_reference_implementation_refuses_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(image_refs.InvalidReferenceError) as caught:
        image_refs.parse(text)
    assert str(caught.value).endswith(".")
    assert image_refs.problem(text).endswith(".")
    assert (image_refs.engine_id(text), image_refs.server_of(text)) == ("", "")
    assert image_refs.normal(text) == text


@pytest.mark.parametrize("row", IDS, ids=lambda row: row["text"][:80])
def test_an_id_is_no_name(row: dict[str, Any]) -> None:
    assert image_refs.engine_id(row["text"]) == row["id"] == image_refs.normal(row["text"])
    assert image_refs.find(row["text"]) is None
    assert "it is the id of an image" in image_refs.problem(row["text"])


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("docker.io/ghcr.io/team/app", "ghcr.io/team/app"),
        ("index.docker.io/localhost/app", "localhost/app"),
        ("docker.io/docker.io/app", "docker.io/app"),
        ("library/" + "a1" * 32, "a1" * 32),
        ("sha256:4f4f", "sha256"),
    ],
)
def test_a_name_that_engines_list_as_another_image_keeps_its_server_and_is_not_taken_from_people(
    text: str, listed: str
) -> None:
    found = image_refs.parse(text)
    assert found.familiar_name == listed
    assert found.name.startswith("docker.io/")
    assert image_refs.server_of(str(found)) == "docker.io"
    assert f"knows {text} as {listed}" in image_refs.problem(text)


@pytest.mark.parametrize("port", ["0", "65536", "99999", "9" * 40])
def test_a_server_on_a_port_that_does_not_exist_is_refused(port: str) -> None:
    assert "not the address of a registry" in image_refs.problem(f"reg.example:{port}/app")
    assert not image_refs.is_server(f"reg.example:{port}")


@given(st.text(max_size=60) | st.from_regex(r"\A[A-Za-z.:/@_\[\]-]{1,40}\Z"))
def test_no_text_breaks_the_parser_and_the_normal_form_stays_what_it_is(text: str) -> None:
    normal = image_refs.normal(text)
    assert image_refs.normal(normal) == normal
    assert image_refs.server_of(normal) == image_refs.server_of(text)
    assert image_refs.pull_parts(text)


@pytest.mark.parametrize(
    ("ref", "server", "fits"),
    [
        ("busybox", "docker.io", True),
        ("index.docker.io/team/app", "docker.io", True),
        ("team/app", "index.docker.io", True),
        ("registry-1.docker.io/team/app", "docker.io", False),
        ("team/app", "registry-1.docker.io", False),
        ("registry-1.docker.io/team/app", "registry-1.docker.io", True),
        ("Docker.io/team/app", "docker.io", False),
        ("docker.io:443/team/app", "docker.io", False),
        ("localreg/app", "localreg", False),
        ("localreg/app", "docker.io", True),
        ("LocalReg/app", "docker.io", False),
        ("LocalReg/app", "localreg", True),
        ("GHCR.io/team/app", "ghcr.io", True),
        ("ghcr.io/team/app", "ghcr.io:443", False),
        ("ghcr.io.evil.example/team/app", "ghcr.io", False),
        ("evil.example/ghcr.io/app", "ghcr.io", False),
        ("docker.io/ghcr.io/app", "ghcr.io", False),
        ("reg:5000/app", "reg", False),
        ("reg/app", "reg", False),
        ("[::1]:5000/app", "[::1]:5000", True),
        ("[::1]:5000/app", "[::1]", False),
        ("busybox", "https://index.docker.io/v1/", False),
        ("no such/image", "", False),
        (SHA, "", False),
        (SHA, "docker.io", False),
    ],
)
def test_a_credential_fits_its_own_server_only(ref: str, server: str, fits: bool) -> None:
    assert image_refs.credential_fits(ref, server) is fits


@pytest.mark.parametrize(
    ("ref", "parts"),
    [
        ("reg:5000/app", ("reg:5000/app", "latest")),
        ("docker.io/library/app:2", ("app", "2")),
        (f"app@{SHA}", ("app", SHA)),
        (f"app:1@{SHA}", ("app", SHA)),
        ("docker.io/ghcr.io/app:1", ("docker.io/ghcr.io/app", "1")),
        ("not a name", ("not a name", "latest")),
    ],
)
def test_references_come_apart_as_the_engine_wants_them(ref: str, parts: tuple[str, str]) -> None:
    assert image_refs.pull_parts(ref) == parts


def test_two_spellings_are_the_same_image_and_nothing_is_the_same_as_nothing() -> None:
    assert image_refs.is_same_image("busybox", "docker.io/library/busybox:latest")
    assert image_refs.is_same_image("a1" * 32, SHA)
    assert not image_refs.is_same_image("LocalReg/app", "localreg/app")
    assert not image_refs.is_same_image("", "")
    assert image_refs.is_pinned(f"app@{SHA}")
    assert not image_refs.is_pinned("app:1")
