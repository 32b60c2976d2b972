"""A build's output without the secrets that it was given, whatever its steps print of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.secret_texts import SecretTexts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# More of a line than this is not held back.
_LONGEST_LINE: Final = 128 * 1024


class MaskedOutput:
    """Lines are passed on whole: a secret may come in two pieces. Without secrets nothing is held
    back."""

    def __init__(self, write: Callable[[str], None], secrets: Iterable[str]) -> None:
        self._write = write
        self._secrets = SecretTexts(secrets)
        self._rest = ""

    def write(self, text: str) -> None:
        if not self._secrets:
            self._write(text)
            return
        text = self._rest + text
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if len(text) - end > _LONGEST_LINE + self._secrets.longest:
            end = max(end, self._secrets.cut(text))
        self._rest = text[end:]
        if end:
            self._write(self.masked(text[:end]))

    def flush(self) -> None:
        rest, self._rest = self._rest, ""
        if rest:
            self._write(self.masked(rest))

    def masked(self, text: str) -> str:
        return self._secrets.masked(text)
