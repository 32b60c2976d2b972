"""What the variables of a Dockerfile's stage hold, as far as its own lines say so. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.protocol.expansion import Expansion, quoted_words

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# BuildKit knows these of itself, and the older builder does not.
_OF_THE_ENGINE: Final = re.compile(r"(?:TARGET|BUILD)[A-Z]+")


@dataclass(frozen=True)
class Value:
    """`text` is None where it is not clear; `arguments` are the ARG names that it depends on: an
    ENV of the base image with such a name counts more than they do."""

    text: str | None
    arguments: frozenset[str] = frozenset()


class Variables:
    """Of one stage; of the lines above the first FROM, without `outer`. A name that no line sets
    is not clear: the base image has variables too."""

    def __init__(
        self, given: Mapping[str, str], escape: str, outer: Mapping[str, Value] | None = None
    ) -> None:
        self._given = given
        self._escape = escape
        self._outer = outer or {}
        self._env: dict[str, Value] = {}
        self.arguments: dict[str, Value] = {}
        # Once a line may have set any of them.
        self._is_lost = False

    def child(self) -> Variables:
        """Of a stage that begins with this one: it has its ENV. Whether it has its ARG too is
        not the same for all engines."""
        made = Variables(self._given, self._escape, self._outer)
        made._env = dict(self._env)
        made._is_lost = self._is_lost
        return made

    def lose(self) -> None:
        """From now on nothing is clear."""
        self._is_lost = True

    def expanded(self, word: str) -> Value:
        used: set[str] = set()

        def lookup(name: str) -> str | None:
            value = self._env.get(name) or self.arguments.get(name)
            if value is None or self._is_lost:
                return None
            used.update(value.arguments)
            return value.text

        return Value(Expansion(self._escape, lookup).of(word), frozenset(used))

    def follow(self, verb: str, rest: str) -> None:
        """An ENV or ARG line."""
        words = quoted_words(rest, self._escape)
        if verb == "ARG":
            for word in words:
                self._declare(word)
        elif words and "=" not in words[0]:
            # The older form: everything behind the name is one value.
            name, *value = rest.split(None, 1)
            self._set({name: self.expanded(value[0].strip() if value else "")})
        else:
            # None of them sees what another of its line sets.
            pairs = (word.partition("=") for word in words)
            self._set({name: self.expanded(text) for name, _, text in pairs})

    def _set(self, values: Mapping[str, Value]) -> None:
        if not all(map(_NAME.fullmatch, values)):
            self.lose()
        self._env.update(values)

    def _declare(self, word: str) -> None:
        name, has_default, default = word.partition("=")
        if not _NAME.fullmatch(name):
            self.lose()
        elif name in self._given:
            self._argue(name, Value(self._given[name]))
        elif _OF_THE_ENGINE.fullmatch(name):
            self._argue(name, Value(None))
        elif has_default:
            self._argue(name, self.expanded(default))
        elif name in self.arguments:
            # Some engines keep what it was, others forget it.
            self._argue(name, Value(None))
        else:
            self._argue(name, self._outer.get(name, Value("")))

    def _argue(self, name: str, value: Value) -> None:
        self.arguments[name] = Value(value.text, value.arguments | {name})
