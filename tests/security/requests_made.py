"""From the product's own schema to requests: half right, half hostile; the same for one seed."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.security.corpus import NUMBERS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

_DEPTH = 4


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    queries: tuple[str, ...]
    body: Mapping[str, Any] | None


@dataclass(frozen=True)
class Attempt:
    method: str
    address: str
    body: bytes | None
    headers: Mapping[str, str]


class Maker:
    """`ids`: kind -> those of everybody's real objects, so that paths and bodies point at them."""

    def __init__(
        self, schema: Mapping[str, Any], ids: Mapping[str, Sequence[str]], rng: Random
    ) -> None:
        self._shapes = schema["components"]["schemas"]
        self._by_kind = ids
        self._ids = [identity for of_kind in ids.values() for identity in of_kind]
        self._rng = rng
        self.operations = [
            _operation(method, path, told)
            for path, methods in sorted(schema["paths"].items())
            for method, told in sorted(methods.items())
            if method in ("get", "post", "put", "patch", "delete")
        ]

    def attempt(self, operation: Operation | None = None) -> Attempt:
        rng = self._rng
        chosen = operation or rng.choice(self.operations)
        address, before = "", ""
        for part in chosen.path.split("/"):
            address += self._place(before) if part.startswith("{") else part
            address, before = f"{address}/", part
        address = address.removesuffix("/")
        query = self._query(chosen)
        body = None
        if chosen.method not in ("get", "delete"):
            content = {} if chosen.body is None else self.value(chosen.body, _DEPTH)
            body = json.dumps(content).encode()
            if rng.random() < 0.02:
                body = body[: rng.randrange(len(body) + 1)]
        headers = {"If-Match": str(rng.choice(("1", "x", "-1", "")))} if rng.random() < 0.1 else {}
        return Attempt(chosen.method.upper(), f"{address}{query}", body, headers)

    def value(self, shape: Mapping[str, Any], depth: int) -> Any:
        rng = self._rng
        if rng.random() < 0.12:
            return self._hostile()
        shape = self._resolved(shape)
        if "enum" in shape:
            return rng.choice([*shape["enum"], *(["nothing"] if rng.random() < 0.1 else [])])
        kind = shape.get("type")
        if kind == "object" or "properties" in shape:
            return self._object(shape, depth)
        if kind == "array":
            count = rng.choice((0, 1, 1, 2, 3)) if depth else 0
            return [self.value(shape.get("items", {}), depth - 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return rng.choice(NUMBERS) if rng.random() < 0.5 else rng.randrange(1, 100)
        if kind == "boolean":
            return rng.random() < 0.5
        return self._text(shape)

    def _object(self, shape: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if not depth:
            return {}
        properties = shape.get("properties", {})
        required = set(shape.get("required", ()))
        wanted = [
            name
            for name in properties
            if (name in required and self._rng.random() < 0.95) or self._rng.random() < 0.3
        ]
        made = {name: self.value(properties[name], depth - 1) for name in wanted}
        extra = shape.get("additionalProperties")
        if isinstance(extra, dict):
            for _ in range(self._rng.choice((0, 1, 2))):
                made[self._text({})] = self.value(extra, depth - 1)
        if self._rng.random() < 0.03:
            made[self._rng.choice(("id", "owner", "is_admin", "revision", "nothing"))] = 1
        return made

    def _resolved(self, shape: Mapping[str, Any]) -> Mapping[str, Any]:
        while True:
            options = shape.get("oneOf") or shape.get("anyOf") or shape.get("allOf")
            if "$ref" in shape:
                shape = self._shapes[shape["$ref"].rpartition("/")[2]]
            elif options:
                shape = self._rng.choice(options)
            else:
                return shape

    def _text(self, shape: Mapping[str, Any]) -> str:
        rng = self._rng
        if shape.get("format") == "uuid":
            return self._identity()
        if rng.random() < 0.45:
            return rng.choice(TEXTS)
        if rng.random() < 0.3:
            return self._identity()
        return rng.choice(("box", "a", "name-1", "busybox", "10.0.0.0/24", "/data", "10.0.0.1"))

    def _place(self, before: str) -> str:
        """Mostly of the kind that the address speaks of: else nearly every answer is 404."""
        kind = "registry" if before == "registries" else before.removesuffix("s")
        if kind in self._by_kind and self._rng.random() < 0.8:
            return self._rng.choice(self._by_kind[kind])
        return self._identity()

    def _identity(self) -> str:
        rng = self._rng
        chance = rng.random()
        if chance < 0.85:
            return rng.choice(self._ids)
        return str(uuid.UUID(int=rng.getrandbits(128))) if chance < 0.95 else "x%00'"

    def _query(self, operation: Operation) -> str:
        if not operation.queries or self._rng.random() < 0.5:
            return ""
        name = self._rng.choice((*operation.queries, "page", "nothing"))
        text = str(self._rng.choice((self._text({}), self._rng.choice(NUMBERS))))
        quoted = "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))
        return f"?{name}={quoted}"

    def _hostile(self) -> Any:
        odd: tuple[Any, ...] = (None, True, [], {}, [None] * 300, {"": {"": 1}})
        return self._rng.choice((*odd, self._rng.choice(NUMBERS), self._rng.choice(TEXTS)))


def _operation(method: str, path: str, told: Mapping[str, Any]) -> Operation:
    queries = tuple(
        item["name"] for item in told.get("parameters", ()) if item.get("in") == "query"
    )
    content = told.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema")
    return Operation(method, path, queries, body)
