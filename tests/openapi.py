"""The product's own OpenAPI document, made once for all tests of a process: it takes a second."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator


@cache
def openapi() -> dict[str, Any]:
    """Return the document; tests read it and leave it as it is."""
    generator: Any = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)
    return document
