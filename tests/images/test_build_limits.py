"""Limits of what a build is made from: number, size and paths of the files, the host's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host
from images.models import Image
from tests.factories import api_client, make_image

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"
LIMIT = 64 * 1024


@pytest.fixture
def small(host: Host) -> Host:
    Host.objects.filter(pk=host.pk).update(build_context_bytes=LIMIT)
    host.refresh_from_db()
    return host


def files(*sizes: int) -> list[dict[str, str]]:
    return [{"path": f"f{n}", "content": "x" * size} for n, size in enumerate(sizes)]


def create(owner: User, host: Host, **fields: Any) -> Any:
    body = {"name": "app", "host": str(host.pk), "kind": "build", "dockerfile": "FROM busybox\n"}
    return api_client(owner).post(URL, body | fields)


def test_dockerfile_and_files_together_keep_within_the_hosts_limit(
    small: Host, owner: User
) -> None:
    answer = create(owner, small, files=files(LIMIT // 2, LIMIT // 2))
    assert answer.status_code == 400
    assert str(LIMIT) in answer.json()["fields"]["files"][0]
    assert create(owner, small, files=files(LIMIT // 2)).status_code == 201


def test_bytes_count_and_not_characters(small: Host, owner: User) -> None:
    accents = [{"path": "a", "content": "é" * (LIMIT // 4)}, *files(LIMIT // 2)]
    assert create(owner, small, files=accents).status_code == 400


def test_a_change_keeps_within_the_limit_too(small: Host, owner: User) -> None:
    image = make_image(small, owner, kind="build")
    url = f"{URL}{image.pk}/"
    answer = api_client(owner).patch(url, {"files": files(LIMIT // 2, LIMIT // 2)})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["files"])
    assert image.builds.count() == 1


def test_a_host_that_shrank_does_not_block_other_changes(small: Host, owner: User) -> None:
    image = make_image(small, owner, kind="build", files=files(LIMIT, LIMIT))
    url = f"{URL}{image.pk}/"
    assert api_client(owner).patch(url, {"name": "other"}).status_code == 200
    assert api_client(owner).patch(url, {"dockerfile": "FROM debian"}).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        *("", "/a", "..", "../a", "a/../../b", "a/./b", "a//b", "a/", "./a", "a\\b"),
        *("Dockerfile", ".dockerignore", "x" * 256, "é" * 200),
    ],
)
def test_a_path_that_leads_astray_is_refused(host: Host, owner: User, path: str) -> None:
    answer = create(owner, host, files=[{"path": path, "content": ""}])
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["files.0.path"]
    assert not Image.objects.exists()


@pytest.mark.parametrize("path", ["a", ".env", "a b/c", "x" * 255, "é" * 127, "..a/b", "a/..b"])
def test_an_odd_but_harmless_path_is_taken(host: Host, owner: User, path: str) -> None:
    assert create(owner, host, files=[{"path": path, "content": "x"}]).status_code == 201


def test_a_path_with_nul_is_refused(host: Host, owner: User) -> None:
    assert create(owner, host, files=[{"path": "a\0b", "content": ""}]).status_code == 400


@pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b/c", "a"), ("a/b/c", "a/b")])
def test_a_file_is_not_a_folder_as_well(host: Host, owner: User, paths: tuple[str, str]) -> None:
    answer = create(owner, host, files=[{"path": path, "content": ""} for path in paths])
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["files"])


@pytest.mark.parametrize(
    ("given", "field"),
    [(files(LIMIT + 1), "files.0.content"), (files(2**20 + 1), "files.0.content")],
)
def test_one_file_has_a_limit_of_its_own(host: Host, owner: User, given: Any, field: str) -> None:
    answer = create(owner, host, files=given)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


def test_so_many_files_are_too_many(host: Host, owner: User) -> None:
    assert create(owner, host, files=files(*[0] * 256)).status_code == 201
    answer = create(owner, host, name="more", files=files(*[0] * 257))
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["files"])


def test_a_snapshot_is_neither_made_nor_changed_like_other_images(host: Host, owner: User) -> None:
    answer = create(owner, host, kind="snapshot", dockerfile="")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["kind"])
    assert "/snapshot/" in answer.json()["message"]
    image = make_image(host, owner, kind="snapshot")
    client, url = api_client(owner), f"{URL}{image.pk}/"
    for change in ({"dockerfile": "FROM x"}, {"reference": "busybox"}, {"push": True}):
        assert client.patch(url, change).status_code == 400
    for forbidden in ("source_workspace", "source_image"):
        assert client.patch(url, {forbidden: str(image.pk)}).status_code == 400
    assert client.patch(url, {"name": "renamed"}).json()["name"] == "renamed"
    assert image.builds.count() == 1
