"""Image references: one spelling per image, and the registry server each one names."""

from __future__ import annotations

from typing import Final

DEFAULT_REGISTRY: Final = "docker.io"


def split_registry(ref: str) -> tuple[str, str]:
    """(server, rest). Only a first part with a dot, a colon or `localhost` names a server."""
    first, slash, rest = ref.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return DEFAULT_REGISTRY, ref


def familiar(ref: str) -> str:
    """The engine's own short spelling: docker.io/library/busybox -> busybox:latest."""
    server, rest = split_registry(ref)
    if server in {DEFAULT_REGISTRY, "index.docker.io"}:
        rest = rest.removeprefix("library/")
        return with_tag(rest)
    return with_tag(f"{server}/{rest}")


def with_tag(ref: str) -> str:
    if "@" in ref or ":" in ref.rpartition("/")[2]:
        return ref
    return f"{ref}:latest"


def split_tag(ref: str) -> tuple[str, str]:
    """(repository, tag or digest) as the engine's pull wants them."""
    if "@" in ref:
        repository, _, digest = ref.partition("@")
        return repository, digest
    repository, _, tag = with_tag(ref).rpartition(":")
    return repository, tag


def repository_of(ref: str) -> str:
    """The part before tag and digest, in the engine's short spelling."""
    name = familiar(ref).partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def same_server(ref: str, server: str) -> bool:
    """True only when `server` is exactly the registry that `ref` would be pulled from."""
    wanted = server.removeprefix("https://").removeprefix("http://").rstrip("/")
    if wanted in {"index.docker.io/v1", "index.docker.io", "registry-1.docker.io"}:
        wanted = DEFAULT_REGISTRY
    return split_registry(ref)[0] == wanted
