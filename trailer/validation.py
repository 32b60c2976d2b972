"""Checks that several services share; each failure is a sentence under the field's name."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import Model

TEXT_LIMIT: Final = 64 * 1024
LIST_LIMIT: Final = 256

# Embeddings, overrides and isolates of a reading direction.
_TURNS_TEXT: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_RESOURCE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def check_resource_name(name: str, *, field: str = "name") -> None:
    """Names that become part of an engine's object name and of a host name."""
    if not _RESOURCE_NAME.fullmatch(name):
        raise Invalid.field(
            field,
            "A name has 1 to 63 characters: small letters, digits and hyphens, "
            "and begins with a letter or digit.",
        )


def check_range(values: Mapping[str, Any], limits: Mapping[str, tuple[int, int]]) -> None:
    """Every named value must lie in its inclusive range; all failures are told at once."""
    wrong = {
        name: [f"It must lie between {low} and {high}."]
        for name, (low, high) in limits.items()
        if name in values and not low <= values[name] <= high
    }
    if wrong:
        raise Invalid(_first(wrong), fields=wrong)


def check_columns(row: Model, names: Iterable[str]) -> None:
    """Lengths, choices and blanks as the model declares them, for these columns only."""
    wanted = set(names)
    exclude = {field.name for field in row._meta.fields} - wanted
    try:
        row.clean_fields(exclude=exclude)
    except ValidationError as error:
        raise invalid_from(error) from error


def check_text(values: Mapping[str, Any]) -> None:
    """No text beyond what databases and engines take, and no NUL in it."""
    for name, value in values.items():
        if isinstance(value, str):
            check_string(value, field=name)


def check_string(value: str, *, field: str, limit: int = TEXT_LIMIT) -> None:
    if "\0" in value:
        raise Invalid.field(field, "Text may not hold NUL characters.")
    if len(value.encode(errors="surrogatepass")) > limit:
        raise Invalid.field(field, f"The text is longer than {limit // 1024} KiB.")


def hidden_character(text: str) -> str:
    """The first character that is not shown, or turns how the text around it reads, as U+202E."""
    found = next((char for char in text if not char.isprintable()), "")
    return f"U+{ord(found):04X}" if found else ""


def check_one_line(value: str, *, field: str, noun: str) -> None:
    """For names and paths: what is read must be what is stored."""
    if hidden := hidden_character(value):
        raise Invalid.field(
            field, f"{noun} holds the character {hidden}, which is not shown. Take it out."
        )
    if value != value.strip():
        raise Invalid.field(field, f"{noun} may not begin or end with a space.")


def check_paragraphs(value: str, *, field: str, noun: str) -> None:
    """For descriptions: lines and tabs, but nothing that makes the page read otherwise."""
    for char in value:
        category = unicodedata.category(char)
        if char in _TURNS_TEXT or (category == "Cc" and char not in "\t\n\r"):
            raise Invalid.field(
                field,
                f"{noun} holds the character U+{ord(char):04X}, which is not shown. Take it out.",
            )


def invalid_from(error: ValidationError) -> Invalid:
    """A Django validation error in the shape that API and pages show."""
    if not hasattr(error, "error_dict"):
        return Invalid(" ".join(error.messages))
    fields = {name: [str(text) for text in texts] for name, texts in error.message_dict.items()}
    general = fields.pop(NON_FIELD_ERRORS, [])
    return Invalid(" ".join(general) or _first(fields), fields=fields)


def stored_text(text: str, limit: int) -> str:
    """What an agent reports, made storable: PostgreSQL refuses NUL, columns have an end."""
    return text.replace("\0", "").encode(errors="replace").decode()[:limit]


def stored_number(number: int, limit: int = 2**62) -> int:
    return min(max(number, 0), limit)


def _first(fields: Mapping[str, list[str]]) -> str:
    name, sentences = next(iter(fields.items()))
    return f"{name}: {sentences[0]}"
