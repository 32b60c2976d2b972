"""Image references and servers as people write them; `agent.protocol.image_refs` reads them."""

from __future__ import annotations

from agent.protocol import image_refs
from trailer.errors import Invalid


def parse_reference(text: str, *, field: str = "reference") -> image_refs.Reference:
    """Raise Invalid unless an engine would take this text as the name of an image."""
    if problem := image_refs.problem(text):
        raise Invalid.field(field, problem)
    return image_refs.parse(text)


def normalise_server(text: str, *, field: str = "server") -> str:
    """As a credential's server is stored: `host` or `host:port` in small letters."""
    server = text.strip().lower()
    if not image_refs.is_server(server):
        raise Invalid.field(
            field,
            f"“{text}” is not the address of a registry; write host or host:port, "
            "without https:// and without a path.",
        )
    return image_refs.server_key(server)
