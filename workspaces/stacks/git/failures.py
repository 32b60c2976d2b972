"""From what git printed to a sentence for the user; pure."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from workspaces.stacks.git.types import GitError, GitRefused

if TYPE_CHECKING:
    from workspaces.stacks.git.address import Address
    from workspaces.stacks.git.types import GitCredential, GitLimits

_MAX_WORDS: Final = 300
_MEMORY: Final = ("out of memory", "cannot allocate memory")
_KNOWN: Final = (
    (
        ("could not read username", "authentication failed", "error: 401", "error: 403",
         "permission denied", "access denied", "terminal prompts disabled"),
        "{url} does not let the server in. Check the stack's credential and its rights.",
    ),
    (
        ("host key verification failed",),
        "The host key of {host} is not the known one. Check the known hosts of the credential.",
    ),
    (
        ("error: 404", "not found", "does not appear to be a git repository", "does not exist",
         "no such file or directory"),
        "There is no repository at {url}, or the credential may not read it.",
    ),
    (
        ("couldn't find remote ref", "remote branch"),
        "{url} does not have this branch.",
    ),
    (
        ("redirect", "error: 301", "error: 302", "error: 307", "error: 308"),
        "{url} answers with a redirect, which is not followed. Use the address it leads to.",
    ),
    (
        ("certificate", "ssl"),
        "The certificate of {host} can't be verified. Check it, or the authorities known here.",
    ),
    (
        ("could not connect", "failed to connect", "connection refused", "timed out",
         "couldn't connect", "network is unreachable", "empty reply", "could not resolve"),
        "{host} can't be reached now. It is tried again later.",
    ),
)  # fmt: skip


def failure(
    address: Address, credential: GitCredential | None, errors: bytes, limits: GitLimits
) -> GitError:
    text = _without_secrets(errors.decode(errors="replace"), credential)
    own = [line for line in text.lower().splitlines() if not line.startswith("remote:")]
    if any(sign in line for line in own for sign in _MEMORY):
        return GitRefused(
            f"{address.url} is too large: reading it needs more than "
            f"{limits.max_memory // 1024 // 1024} MiB of memory. Keep the stack's files in a "
            "smaller repository."
        )
    low = text.lower()
    for signs, sentence in _KNOWN:
        if any(sign in low for sign in signs):
            return GitError(sentence.format(url=address.url, host=address.host or address.path))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    words = "".join(char for char in (said or ["nothing"])[0] if char.isprintable())
    return GitError(f"{address.url} can't be read. git said: {words[:_MAX_WORDS]}")


def too_large(address: Address, limits: GitLimits) -> GitRefused:
    return GitRefused(
        f"{address.url} is too large: reading one file of it needs more than "
        f"{limits.max_bytes // 1024 // 1024} MiB. Allow partial clones on the git server "
        "(uploadpack.allowFilter), or use a smaller repository."
    )


def _without_secrets(text: str, credential: GitCredential | None) -> str:
    if credential is None:
        return text
    for secret in (credential.token, credential.deploy_key):
        if secret:
            plain = secret.reveal()
            pair = b64encode(f"{credential.username or 'git'}:{plain}".encode()).decode()
            text = text.replace(plain, "***").replace(pair, "***")
    return text
