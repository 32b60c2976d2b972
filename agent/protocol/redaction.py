"""What no log line may show: secrets that this process handled, and whatever looks like one.

Used by server and agent alike, on the finished texts of a line, its exception included.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from agent.protocol.compare import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

# Shorter values are no secrets, and masking them would leave nothing of a sentence.
SHORTEST: Final = 8
# Longer ones are documents; their secrets are remembered one by one.
_LONGEST: Final = 16 * 1024
_MOST: Final = 20_000
_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|[^\s"',;&<>)\]}]+)"""
_NAME: Final = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)"
_SIGN_IN: Final = r"""(?:(?:token|bearer|basic|digest)\s{1,4})?[^\s"']+"""
_HEADERS: Final = (
    r"(?:proxy-)?authorization|(?:set-)?cookie|x-gitlab-token|x-api-key|x-registry-auth"
)
# Each with a part in front that stays; all of them take time in proportion to the text.
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # Our own tokens, stored secrets, and tokens of git servers.
        r"(trl_[a-z]{1,20}_)[\w-]{16,}",
        r"()\bgAAAAA[\w-]{32,}={0,2}",
        r"(\b(?:gh[pousr]_|github_pat_|glpat-))[\w-]{16,}",
        r"(AGE-SECRET-KEY-1)[0-9A-Z]{16,}",
        r"()\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
        r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(?:-----END|\Z)",
        # Who signs in, in headers, addresses and settings.
        rf"""((?:{_HEADERS})["']?\s{{0,4}}[:=]\s{{0,4}}["']?){_SIGN_IN}""",
        r"((?:bearer|token|basic)\s{1,4})(?=[^\s]{0,200}\d)[\w.~+/-]{20,}={0,2}",
        r"""(://)[^\s/?#"'<>]{1,1024}@""",
        rf"""({_NAME}[\w-]{{0,32}}["']?\s{{0,4}}=\s{{0,4}}){_VALUE}""",
        rf"""({_NAME}[\w-]{{0,32}}["']\s{{0,4}}:\s{{0,4}}){_VALUE}""",
        r"([?&](?:code|ticket|signature|state|key)=)[^\s&#\"']+",
        r"(/login/reset/)[^\s/]+/[^\s/\"']+",
    )
)
_SECRET_NAME: Final = re.compile(rf"{_NAME}|authorization|cookie", re.IGNORECASE)


class LiveSecrets:
    """Secrets of this process, as digests found by the beginnings of their texts: looking through
    a line costs the same however many there are, and no secret is kept for it."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        # By the secret's hash, oldest first: where in `_marks` it is found.
        self._known: dict[int, tuple[tuple[int, tuple[int, bytes]], ...]] = {}
        # By the hash of the first characters: length and digest of each secret that begins so.
        self._marks: dict[int, frozenset[tuple[int, bytes]]] = {}

    def remember(self, *values: str) -> None:
        for value in values:
            if hash(value) in self._known or not SHORTEST <= len(value) <= _LONGEST:
                continue
            marks = tuple((hash(text[:SHORTEST]), _mark(text)) for text in _spellings(value))
            with self._lock:
                self._known[hash(value)] = marks
                for start, mark in marks:
                    self._marks[start] = self._marks.get(start, frozenset()) | {mark}
                if len(self._known) > self._most:
                    self._forget(next(iter(self._known)))

    def masked(self, text: str) -> str:
        marks, found, end = self._marks, [], 0
        if not marks:
            return text
        kept = 0
        for at in range(len(text) - SHORTEST + 1):
            for length, digest in marks.get(hash(text[at : at + SHORTEST]), ()):
                if at + length > end and _mark(text[at : at + length])[1] == digest:
                    # Secrets that overlap are masked as one.
                    if at >= end:
                        found.append(text[kept:at])
                    end = kept = at + length
        return MASK.join([*found, text[kept:]])

    def _forget(self, known: int) -> None:
        for start, mark in self._known.pop(known, ()):
            left = self._marks.get(start, frozenset()) - {mark}
            if left:
                self._marks[start] = left
            else:
                self._marks.pop(start, None)


# Of the process, like its log: whoever opens a secret and whoever writes a line share it.
LIVE: Final = LiveSecrets()


def redacted(text: str) -> str:
    text = LIVE.masked(text)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


def redacted_field(name: str, value: object) -> object:
    """A field of a structured line, whatever it holds."""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, dict):
        return {key: redacted_field(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redacted_field(name, item) for item in value]
    text = value if isinstance(value, str) else str(value)
    return MASK if text and _SECRET_NAME.search(name) else redacted(text)


def _spellings(value: str) -> Iterable[str]:
    """As it is, line by line, and as programs write it: in addresses, JSON and tracebacks."""
    lines = value.splitlines() if "\n" in value else []
    texts = [value, *lines]
    for text in tuple(texts):
        texts += [repr(text)[1:-1], json.dumps(text)[1:-1], quote(text, safe="")]
    return {text for text in texts if len(text) >= SHORTEST and text.strip() and text != MASK}


def _mark(text: str) -> tuple[int, bytes]:
    content = text.encode(errors="surrogatepass")
    return len(text), hashlib.blake2b(content, digest_size=16).digest()
