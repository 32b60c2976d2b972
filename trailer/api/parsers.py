"""JSON that our databases can store: no NUL, no lone surrogates, no NaN, an object at the top."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEPTH = 20


class StrictJSONParser(JSONParser):
    strict = True

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
        if not isinstance(data, dict | list):
            raise ParseError("The body must be a JSON object.")
        _check(data, _DEPTH)
        return data


def _check(value: Any, depth: int, path: str = "") -> None:
    if depth == 0:
        raise ParseError("The body is nested too deeply.")
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            # A name that can't be stored can't be told either: what holds it is told.
            _check_text(key, path)
            _check(item, depth - 1, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, depth - 1, f"{path}.{number}" if path else str(number))


def _check_text(text: str, path: str) -> None:
    if "\0" in text:
        raise _refused(path, "Text may not hold NUL characters.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _refused(path, "Text must be valid Unicode.") from error


def _refused(path: str, sentence: str) -> Invalid:
    if not path:
        return Invalid(sentence)
    return Invalid(f"{path}: {sentence}", fields={path: [sentence]})
