"""What an engine says of a pull that failed, as a sentence for people; its own words follow."""

from __future__ import annotations

from typing import Final

from agent.protocol import image_refs

# Looked for in this order; the first that fits is said.
_KINDS: Final = (
    ("The disk of this host is full, so {ref} could not be stored", ("no space left",)),
    (
        "The registry {server} refused access to {ref}; check its credential",
        ("unauthorized", "authentication required", "no basic auth", "denied", "forbidden"),
    ),
    (
        "{ref} was not found in its registry",
        ("manifest unknown", "not found", "name unknown", "does not exist"),
    ),
    # The first thing that an engine asks a registry for.
    ("The registry {server} cannot be reached", ('/v2/":', "/v2/: ")),
    (
        "The download of {ref} broke off",
        ("unexpected eof", "connection reset", "broken pipe", "verification failed"),
    ),
    (
        "The registry {server} cannot be reached",
        ("connection refused", "no such host", "no route", "timeout", "dial tcp", "x509", "eof"),
    ),
)


def pull_problem(ref: str, said: str) -> str:
    words = " ".join(said.split())
    for sentence, signs in _KINDS:
        if any(sign in words.lower() for sign in signs):
            told = sentence.format(ref=ref, server=image_refs.server_of(ref) or f"of {ref}")
            return f"{told}. (The engine said: {words})"
    return f"{ref} could not be pulled: {words}"
