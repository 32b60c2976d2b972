"""Repositories that want more than a server has: disk, memory, output."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from workspaces.stacks.git.address import parse_repository
from workspaces.stacks.git.command import git_for
from workspaces.stacks.git.source import GitSource
from workspaces.stacks.git.types import GitLimits, GitRefused

if TYPE_CHECKING:
    from tests.ground.gitserver import GitServer

STACK = "services: {web: {image: a}}\n"
_AS_ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def source(server: GitServer, url: str, **more: int) -> GitSource:
    limits = replace(GitLimits(allow=tuple(server.allow.split(","))), **more)  # type: ignore[arg-type]
    return GitSource(repository=url, branch="main", limits=limits)


def test_a_repository_too_large_is_given_up_and_nothing_stays(git_server: GitServer) -> None:
    repository = git_server.repository("huge")
    repository.git("config", "uploadpack.allowFilter", "false")
    repository.commit({"trailer.yml": STACK, "film.bin": os.urandom(8_000_000)})
    with pytest.raises(GitRefused, match="is too large"):
        source(git_server, repository.url, max_bytes=500_000).fetch()
    with pytest.raises(GitRefused, match="more than 1 folders"):
        source(git_server, repository.file_url, max_objects=1).fetch()


def test_a_small_pack_that_grows_in_memory_is_given_up(git_server: GitServer) -> None:
    """128 MiB of folder in half a megabyte of pack: neither disk nor time would stop it."""
    repository = git_server.repository("bomb")
    repository.git("config", "core.compression", "1")
    entry = b"100644 %s\0%s" % (b"a" * 65_000, bytes(20))
    tree = repository.git(
        *("hash-object", "-t", "tree", "-w", "--stdin", "--literally"),
        input_bytes=entry * (128 * 1024**2 // len(entry)),
    ).strip()
    commit = repository.git(*_AS_ADA, "commit-tree", tree, "-m", "Boom").strip()
    repository.git("update-ref", "refs/heads/main", commit)
    sent = sum(file.stat().st_size for file in repository.folder.rglob("*") if file.is_file())
    assert sent < 1024**2
    with pytest.raises(GitRefused, match="needs more than 96 MiB of memory"):
        source(git_server, repository.url, max_memory=96 * 1024**2).fetch()


def test_git_writes_no_file_larger_than_its_limit(git_server: GitServer) -> None:
    """The kernel stops it: the look at the folder comes too late for a fast writer."""
    address = parse_repository(git_server.repository("writer").file_url)
    with git_for(address, (), None, GitLimits(max_bytes=100_000)) as git:
        git("init", "--quiet", "--bare", "--template=", ".")
        with pytest.raises(GitRefused, match="is too large"):
            git("hash-object", "-w", "--stdin", input_text=os.urandom(300_000).hex())
        assert not any(file.stat().st_size > 100_000 for file in git.folder.rglob("*"))


def test_more_branches_than_anybody_has_are_not_listed_to_the_end(git_server: GitServer) -> None:
    """ls-remote takes every ref that ends as asked for; what it prints is bounded."""
    repository = git_server.repository("talker")
    commit = repository.commit({"trailer.yml": STACK})
    names = (f"refs/x/{number:05}{'x' * 150}/refs/heads/main" for number in range(30_000))
    lines = "".join(f"{commit} {name}\n" for name in names)
    (repository.folder / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted \n{lines}"
    )
    address = parse_repository(repository.file_url)
    with (
        git_for(address, (), None, GitLimits()) as git,
        pytest.raises(GitRefused, match="says too much"),
    ):
        git("ls-remote", "--", address.url)
