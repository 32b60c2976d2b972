"""Repositories on a real git server: what is read, what is refused, and what never leaks."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.ground.gitserver import SUBMODULE, SYMLINK, GitServer
from tests.ground.gitssh import GitSshServer
from tests.ground.wait import eventually
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.git.address import parse_repository
from workspaces.stacks.git.command import git_for
from workspaces.stacks.git.folder import folders_sweep, work_folder
from workspaces.stacks.git.source import GitSource
from workspaces.stacks.git.types import GitCredential, GitError, GitLimits, GitRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.gitserver import GitRepository

STACK = "services: {web: {image: a}}\n"
TOKEN = "tok-3n-of-the-test"


@pytest.fixture(scope="module")
def locked_server() -> Iterator[GitServer]:
    server = GitServer(password=TOKEN)
    try:
        yield server.start()
    finally:
        server.destroy()


def source(server: GitServer, url: str, path: str = "", **more: object) -> GitSource:
    limits = GitLimits(allow=tuple(server.allow.split(",")), **more)  # type: ignore[arg-type]
    return GitSource(repository=url, branch="main", path=path, limits=limits)


@pytest.fixture(scope="module")
def shop(git_server: GitServer) -> GitRepository:
    """Two stacks, and much that neither needs."""
    repository = git_server.repository("shop")
    repository.commit(
        {
            "web/trailer.yml": STACK,
            "web/trailer.vars.yml": "values: {A: b}\n",
            "web/compose.yaml": "never read",
            "api/docker-compose.yml": STACK,
            "film.bin": os.urandom(3_000_000),
        },
        "Begin",
    )
    return repository


@pytest.mark.parametrize("kind", ["http", "file"])
def test_a_stack_is_read_with_its_commit_over_http_and_from_files(
    git_server: GitServer, shop: GitRepository, kind: str
) -> None:
    url = shop.url if kind == "http" else shop.file_url
    web = source(git_server, url, "web", max_bytes=1_000_000)
    checkout = web.fetch()
    assert web.newest().id == checkout.commit_id == shop.head()
    assert (checkout.file_name, checkout.text) == ("trailer.yml", STACK)
    assert checkout.variables_text == "values: {A: b}\n"
    assert (checkout.author, checkout.message) == ("Ada Example", "Begin")
    assert checkout.committed_at.year == 2023
    other = source(git_server, url, "api").fetch()
    assert (other.file_name, other.variables_text) == ("docker-compose.yml", "")


def test_looking_for_a_newer_commit_is_one_ls_remote(
    git_server: GitServer, shop: GitRepository
) -> None:
    git_server.requests.clear()
    source(git_server, shop.url).newest()
    assert [line.split()[0] for line in git_server.requests] == ["GET", "POST"]


def test_a_folder_that_belongs_to_another_user_is_read(git_server: GitServer) -> None:
    """As one that was mounted into a container; `TRAILER_GIT_ALLOW` is what vouches for it."""
    repository = git_server.repository("mounted")
    commit = repository.commit({"a/trailer.yml": STACK})
    for path in (repository.folder, *repository.folder.rglob("*")):
        os.chown(path, 65534, 65534)
    assert source(git_server, repository.file_url, "a").fetch().commit_id == commit


def test_a_commit_that_does_not_touch_the_stack_is_no_change(git_server: GitServer) -> None:
    repository = git_server.repository("mono")
    repository.commit({"a/trailer.yml": STACK, "b/trailer.yml": STACK})
    first = source(git_server, repository.file_url, "a").fetch()
    assert first.changed
    repository.commit({"b/trailer.yml": STACK + "# moved\n", "a/readme": "x"})
    second = source(git_server, repository.file_url, "a").fetch(first.fingerprint)
    assert (second.changed, second.commit_id) == (False, repository.head())
    assert second.text == STACK
    repository.commit({"a/trailer.vars.yml": "values: {}\n"})
    assert source(git_server, repository.file_url, "a").fetch(first.fingerprint).changed


def test_a_server_without_partial_clones_is_read_too(git_server: GitServer) -> None:
    repository = git_server.repository("plain")
    repository.git("config", "uploadpack.allowFilter", "false")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "false")
    repository.commit({"trailer.yml": STACK, "other": "x"})
    assert source(git_server, repository.url).fetch().text == STACK


@pytest.mark.parametrize(
    ("files", "mode", "path", "sentence"),
    [
        ({"trailer.yml": "/etc/passwd"}, SYMLINK, "", "is a symbolic link, which is not read"),
        ({"web": "/etc"}, SYMLINK, "web", "web in .* is a symbolic link, which is not followed"),
        ({"web": "a" * 40}, SUBMODULE, "web/in", "web in .* is a submodule"),
        ({"trailer.yml/x": "y"}, "100644", "", "trailer.yml is a folder"),
        ({"readme": "y"}, "100644", "web", "There is no stack file in web of the branch main"),
        ({"trailer.yml": b"\xff\xfe"}, "100644", "", "is not UTF-8 text"),
        ({"trailer.yml": "x" * 300_000}, "100644", "", "is larger than 256 KiB"),
        (
            {"trailer.yml": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n"},
            "100644",
            "",
            "is stored in Git LFS",
        ),
    ],
)
def test_what_is_no_plain_file_is_refused(
    git_server: GitServer,
    files: dict[str, str | bytes | None],
    mode: str,
    path: str,
    sentence: str,
    request: pytest.FixtureRequest,
) -> None:
    repository = git_server.repository(f"odd-{abs(hash(request.node.name))}")
    repository.commit(files, mode=mode)
    with pytest.raises(GitError, match=sentence):
        source(git_server, repository.file_url, path).fetch()


def test_a_server_that_does_not_answer_is_given_up_in_time(git_server: GitServer) -> None:
    url = git_server.repository("slow").url
    git_server.go.clear()
    try:
        began = time.monotonic()
        with pytest.raises(GitError, match=r"did not answer within 0\.3 seconds"):
            source(git_server, url, timeout_seconds=0.3).newest()
        assert time.monotonic() - began < 3
    finally:
        git_server.go.set()


def test_a_redirect_is_not_followed(git_server: GitServer, locked_server: GitServer) -> None:
    repository = locked_server.repository("target")
    git_server.redirect_to = locked_server.url
    locked_server.requests.clear()
    try:
        with pytest.raises(GitError, match="answers with a redirect, which is not followed"):
            source(git_server, f"{git_server.url}/{repository.name}.git").newest()
    finally:
        git_server.redirect_to = ""
    assert locked_server.requests == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("nowhere", "There is no repository at"), ("empty", "has no branch main")],
)
def test_what_is_not_there_is_said_so(git_server: GitServer, name: str, sentence: str) -> None:
    git_server.repository("empty") if name == "empty" else None
    with pytest.raises(GitError, match=sentence):
        source(git_server, f"{git_server.url}/{name}.git").newest()


def test_a_server_that_is_away_is_said_so(git_server: GitServer) -> None:
    gone = GitServer().start()
    url = gone.repository("a").url
    gone.destroy()
    with pytest.raises(GitError, match="can't be reached now"):
        GitSource(repository=url, branch="main", limits=GitLimits(allow=(gone.url,))).newest()


def test_a_token_opens_the_door_and_shows_up_nowhere(locked_server: GitServer) -> None:
    repository = locked_server.repository("private")
    repository.commit({"trailer.yml": STACK})
    opened = GitSource(
        repository=repository.url,
        branch="main",
        credential=GitCredential(token=Secret(TOKEN)),
        limits=GitLimits(allow=(locked_server.url,)),
    )
    assert TOKEN not in repr(opened)
    seen: list[str] = []
    locked_server.go.clear()
    reader = Thread(target=lambda: seen.append(opened.fetch().text))
    locked_server.requests.clear()
    reader.start()
    try:
        eventually(lambda: locked_server.requests, 10, "git did not ask the server")
        commands = [_command_line(folder) for folder in Path("/proc").glob("[0-9]*")]
    finally:
        locked_server.go.set()
        reader.join(30)
    assert seen == [STACK]
    assert any("git" in command and repository.url in command for command in commands)
    assert not any(TOKEN in command for command in commands)


def test_what_a_killed_server_left_is_removed_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    long_ago = time.time() - 60
    left, new, foreign = (tmp_path / name for name in ("trailer-git-a", "trailer-git-b", "other"))
    for folder in (left, new, foreign):
        folder.mkdir()
        (folder / "key").write_text("a deploy key")
    with work_folder() as used:
        for folder in (left, foreign, used):
            os.utime(folder, (long_ago, long_ago))
        folders_sweep()
        assert sorted(tmp_path.iterdir()) == sorted([foreign, new, used])
    assert sorted(tmp_path.iterdir()) == sorted([foreign, new])


@pytest.mark.parametrize("token", ["", "wrong-token"])
def test_without_the_right_token_the_sentence_says_so_and_holds_no_token(
    locked_server: GitServer, token: str
) -> None:
    credential = GitCredential(token=Secret(token)) if token else None
    closed = GitSource(
        repository=f"{locked_server.url}/private.git",
        branch="main",
        credential=credential,
        limits=GitLimits(allow=(locked_server.url,)),
    )
    with pytest.raises(GitError, match="does not let the server in") as caught:
        closed.newest()
    assert "wrong-token" not in caught.value.message


def test_git_is_held_to_the_address_that_was_checked(
    git_server: GitServer, shop: GitRepository
) -> None:
    """Nobody's DNS knows the name, so only the pinned address can have been used."""
    address = parse_repository(f"http://pinned.test:{git_server.port}/shop.git")
    with git_for(address, ("127.0.0.1",), None, GitLimits()) as git:
        assert shop.head() in git("ls-remote", "--", address.url).decode()


def test_loopback_is_refused_without_leave_before_any_connection(git_server: GitServer) -> None:
    git_server.requests.clear()
    with pytest.raises(GitRefused):
        GitSource(repository=f"{git_server.url}/shop.git", branch="main").newest()
    port = git_server.port
    with pytest.raises(GitRefused, match="private network"):
        GitSource(repository=f"https://localhost:{port}/shop.git", branch="main").newest()
    assert git_server.requests == []


def _command_line(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_text()
    except OSError:
        return ""  # it ended meanwhile


@pytest.fixture(scope="module")
def ssh_server(git_server: GitServer) -> Iterator[GitSshServer]:
    server = GitSshServer(git_server.folder)
    try:
        yield server.start()
    finally:
        server.destroy()


def over_ssh(server: GitSshServer, **credential: str) -> GitSource:
    return GitSource(
        repository=server.url("shop"),
        branch="main",
        path="web",
        credential=GitCredential(
            deploy_key=Secret(credential.get("key", server.deploy_key)),
            known_hosts=credential.get("known_hosts", server.known_hosts),
        ),
        limits=GitLimits(
            allow=("127.0.0.1",), known_hosts_file=credential.get("known_hosts_file", "")
        ),
    )


def test_a_deploy_key_opens_a_repository_over_ssh(
    ssh_server: GitSshServer, shop: GitRepository
) -> None:
    opened = over_ssh(ssh_server)
    assert opened.newest().id == shop.head()
    assert opened.fetch().text == STACK
    assert all(line.startswith("git-upload-pack ") for line in ssh_server.requests)
    assert ssh_server.deploy_key.splitlines()[2] not in repr(opened)


def test_an_ssh_server_with_another_key_than_the_pinned_one_is_not_trusted(
    ssh_server: GitSshServer, shop: GitRepository
) -> None:
    other = GitSshServer(ssh_server.folder).public_key
    pinned = ssh_server.known_hosts.replace(ssh_server.public_key, other)
    with pytest.raises(GitError, match=r"host key of 127\.0\.0\.1 is not the known one"):
        over_ssh(ssh_server, known_hosts=pinned).newest()


def test_a_key_seen_once_is_remembered_and_a_changed_one_refused(
    ssh_server: GitSshServer, shop: GitRepository, tmp_path: Path
) -> None:
    remembered = tmp_path / "known hosts"
    first = over_ssh(ssh_server, known_hosts="", known_hosts_file=str(remembered))
    assert first.newest().id == shop.head()
    assert "ssh-ed25519" in remembered.read_text()
    name = remembered.read_text().split()[0]
    remembered.write_text(f"{name} {GitSshServer(ssh_server.folder).public_key}\n")
    with pytest.raises(GitError, match="is not the known one"):
        first.newest()


def test_a_wrong_deploy_key_is_told_without_showing_it(
    ssh_server: GitSshServer, shop: GitRepository
) -> None:
    wrong = GitSshServer(ssh_server.folder).deploy_key
    with pytest.raises(GitError, match="does not let the server in") as caught:
        over_ssh(ssh_server, key=wrong).newest()
    assert wrong.splitlines()[2] not in caught.value.message


def test_ssh_without_a_deploy_key_is_refused_at_once() -> None:
    bare = GitSource(
        repository="git@127.0.0.1:shop.git", branch="main", limits=GitLimits(allow=("127.0.0.1",))
    )
    with pytest.raises(GitRefused, match="needs a deploy key"):
        bare.newest()
