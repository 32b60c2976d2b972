"""One stack's files in a git repository: which commit is newest, and what it holds."""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from workspaces.stacks.file.reader import STACK_FILE_NAMES
from workspaces.stacks.file.types import Checkout, Commit
from workspaces.stacks.file.variables import VARIABLES_FILE_NAME
from workspaces.stacks.git.address import parse_repository, reachable_addresses
from workspaces.stacks.git.command import git_for
from workspaces.stacks.git.types import GitError, GitLimits, GitRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workspaces.stacks.git.command import Git
    from workspaces.stacks.git.types import GitCredential

_REF: Final = "refs/trailer/newest"
_FETCH: Final = (
    "-c",
    "fetch.negotiationAlgorithm=noop",
    "fetch",
    "--quiet",
    "--filter=blob:none",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
)
_NO_SUCH_REF: Final = 2
_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BAD_IN_BRANCH: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_REGULAR: Final = ("100644", "100755")
_KINDS: Final = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder"}
_LFS: Final = "version https://git-lfs.github.com/"
_MAX_MESSAGE: Final = 4000


@dataclass(frozen=True, kw_only=True)
class GitSource:
    """`path` is a folder, or the stack file itself when it ends in .yml or .yaml."""

    repository: str
    branch: str
    path: str = ""
    credential: GitCredential | None = None
    limits: GitLimits = field(default_factory=GitLimits)

    def newest(self) -> Commit:
        """One `git ls-remote`; raises GitError."""
        ref = f"refs/heads/{checked_branch(self.branch)}"
        address = parse_repository(self.repository)
        addresses = reachable_addresses(address, self.limits.allow)
        with git_for(address, addresses, self.credential, self.limits) as git:
            printed = git(
                "ls-remote", "--exit-code", "--", address.url, ref, accept=(0, _NO_SUCH_REF)
            )
        for line in printed.decode(errors="replace").splitlines():
            commit_id, _, name = line.partition("\t")
            if name == ref and _COMMIT_ID.fullmatch(commit_id):
                return Commit(id=commit_id, branch=self.branch)
        raise GitError(f"{address.url} has no branch {self.branch}.")

    def fetch(self, known_fingerprint: str = "") -> Checkout:
        """The stack's two files at the newest commit, and nothing else; raises GitError."""
        ref = f"refs/heads/{checked_branch(self.branch)}"
        names, variables_name = file_paths(self.path)
        address = parse_repository(self.repository)
        addresses = reachable_addresses(address, self.limits.allow)
        with git_for(address, addresses, self.credential, self.limits) as git:
            git("init", "--quiet", "--bare", "--template=", ".")
            # Only commit and trees; the files that are read come by a second fetch.
            git(*_FETCH, "--depth=1", "--", address.url, f"{ref}:{_REF}")
            self._check_count(git)
            found = _tree_entries(git, [*names, variables_name])
            name = next((name for name in names if name in found), "")
            if not name:
                raise self._missing(git, names)
            wanted = [name, *([variables_name] if variables_name in found else [])]
            blobs = {each: _blob_id(each, found[each]) for each in wanted}
            git(*_FETCH, "--", address.url, *sorted(set(blobs.values())))
            texts = self._texts(git, blobs)
            commit_id, author, committed_at, message = _commit_facts(git)
        fingerprint = hashlib.sha256(repr(sorted(blobs.items())).encode()).hexdigest()
        return Checkout(
            commit_id=commit_id,
            author=author,
            message=message,
            committed_at=committed_at,
            file_name=posixpath.basename(name),
            text=texts[name],
            variables_text=texts.get(variables_name, ""),
            fingerprint=fingerprint,
            changed=fingerprint != known_fingerprint,
        )

    def _check_count(self, git: Git) -> None:
        for line in git("count-objects", "--verbose").decode().splitlines():
            name, _, count = line.partition(": ")
            if name == "in-pack" and int(count) > self.limits.max_objects:
                raise GitRefused(
                    f"{git.address.url} has more than {self.limits.max_objects} folders. Keep the "
                    "stack's files in a smaller repository."
                )

    def _missing(self, git: Git, names: Sequence[str]) -> GitError:
        """Says why: a link or a submodule on the way is never followed."""
        parent = posixpath.dirname(names[0])
        while parent:
            for mode, _ in _tree_entries(git, [parent]).values():
                if mode in {"120000", "160000"}:
                    return GitRefused(
                        f"{parent} in {git.address.url} is {_KINDS[mode]}, which is not followed."
                    )
            parent = posixpath.dirname(parent)
        shown = ", ".join(posixpath.basename(name) for name in names)
        place = posixpath.dirname(names[0]) or "the top folder"
        return GitError(
            f"There is no stack file in {place} of the branch {self.branch}. It may be named: "
            f"{shown}."
        )

    def _texts(self, git: Git, blobs: Mapping[str, str]) -> dict[str, str]:
        texts = {}
        for name, blob in blobs.items():
            size = int(git("cat-file", "-s", blob))
            if size > self.limits.max_file_bytes:
                raise GitRefused(
                    f"{name} is larger than {self.limits.max_file_bytes // 1024} KiB."
                )
            try:
                texts[name] = git("cat-file", "blob", blob).decode()
            except UnicodeDecodeError as error:
                raise GitRefused(f"{name} is not UTF-8 text.") from error
            if texts[name].startswith(_LFS):
                raise GitRefused(f"{name} is stored in Git LFS, which is not read.")
        return texts


def checked_branch(branch: str) -> str:
    """As `git check-ref-format`: what passes can't be taken for an option or a pattern."""
    parts = branch.split("/")
    if (
        not branch
        or not branch.isprintable()
        or len(branch) > 200
        or branch.startswith("-")
        or branch.endswith(("/", "."))
        or branch == "@"
        or _BAD_IN_BRANCH.search(branch)
        or any(part.startswith(".") or part.endswith(".lock") or not part for part in parts)
    ):
        raise GitRefused(f"{branch[:80]!r} is not the name of a branch.")
    return branch


def checked_path(path: str) -> str:
    """A folder or file inside the repository, without ./ and surrounding slashes."""
    if len(path) > 500 or not path.isprintable() or "\\" in path or ".." in path.split("/"):
        raise GitRefused(
            "The path must be a folder inside the repository, for example deploy/web."
        )
    clean = posixpath.normpath(f"/{path.strip()}").lstrip("/")
    if any(part == ".git" or part.startswith("-") for part in clean.lower().split("/")):
        raise GitRefused(
            "The path must be a folder inside the repository, for example deploy/web."
        )
    return clean


def file_paths(path: str) -> tuple[tuple[str, ...], str]:
    """The names to look for, in order, and the variables' name beside them."""
    clean = checked_path(path)
    if clean.endswith((".yml", ".yaml")):
        return (clean,), posixpath.join(posixpath.dirname(clean), VARIABLES_FILE_NAME)
    names = tuple(posixpath.join(clean, name) for name in STACK_FILE_NAMES)
    return names, posixpath.join(clean, VARIABLES_FILE_NAME)


def _tree_entries(git: Git, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Mode and object id by path. Trees are read, no file is opened, no link followed."""
    literal = [f":(literal,top){path}" for path in paths]
    found = {}
    for line in git("ls-tree", "-z", "--full-tree", _REF, "--", *literal).split(b"\0"):
        facts, _, name = line.decode(errors="replace").partition("\t")
        if name:
            mode, _, object_id = facts.split(" ")
            found[name] = (mode, object_id)
    return found


def _blob_id(name: str, entry: tuple[str, str]) -> str:
    mode, object_id = entry
    if mode not in _REGULAR:
        raise GitRefused(f"{name} is {_KINDS.get(mode, 'not a file')}, which is not read.")
    return object_id


def _commit_facts(git: Git) -> tuple[str, str, datetime, str]:
    printed = git("log", "-1", "--no-show-signature", "--format=%H%n%ct%n%an%n%B", _REF)
    commit_id, seconds, author, message = printed.decode(errors="replace").split("\n", 3)
    return (
        commit_id,
        _printable(author)[:200],
        datetime.fromtimestamp(min(max(int(seconds), 0), 32_503_680_000), UTC),
        "\n".join(_printable(line) for line in message.strip().splitlines())[:_MAX_MESSAGE],
    )


def _printable(text: str) -> str:
    return "".join(char for char in text if char.isprintable())
