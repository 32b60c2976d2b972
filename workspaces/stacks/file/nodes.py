"""YAML with line numbers: a value of the file that knows its key and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from workspaces.stacks.file.errors import StackFileError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MAX_BYTES: Final = 256 * 1024
# Aliases let a small text stand for a huge one; nobody writes so many values by hand.
_MAX_VALUES: Final = 20_000
_MAX_DEPTH: Final = 32
_CORE: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"


@dataclass
class Reading:
    """One pass over one file: what was read where, and what is wrong with it."""

    file_name: str
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    values: int = 0

    def root(self, text: str) -> Item:
        if len(text.encode(errors="replace")) > _MAX_BYTES:
            raise StackFileError(f"{self.file_name} is larger than 256 KiB.")
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise StackFileError(
                f"{self.file_name}, line {line}: this is not valid YAML: {error.problem}."
            ) from error
        except (yaml.YAMLError, RecursionError) as error:
            raise StackFileError(
                f"{self.file_name} is not valid YAML: it holds a character or a nesting "
                "that YAML does not allow."
            ) from error
        if node is None:
            raise StackFileError(f"{self.file_name} is empty.")
        return Item(self, node, "")

    def finish(self) -> None:
        if self.problems:
            raise StackFileError(*self.problems)


class Item:
    """One value; its methods give it as what the caller expects, or refuse with a sentence."""

    def __init__(self, reading: Reading, node: yaml.Node, path: str, depth: int = 0) -> None:
        self.reading, self.node, self.path, self._depth = reading, node, path, depth
        self.line: int = node.start_mark.line + 1
        reading.values += 1
        if reading.values > _MAX_VALUES or depth > _MAX_DEPTH:
            raise StackFileError(
                f"{reading.file_name}, line {self.line}: the file holds too many or too deeply "
                "nested values. Use fewer aliases."
            )
        if not node.tag.startswith(_CORE) or node.tag.startswith(f"{_CORE}python"):
            raise self.wrong(f"the tag {node.tag} is not supported")
        reading.lines.setdefault(path, self.line)

    def wrong(self, sentence: str) -> StackFileError:
        return StackFileError(self.sentence(sentence))

    def sentence(self, text: str) -> str:
        key = f"{self.path}: " if self.path else ""
        return f"{self.reading.file_name}, line {self.line}: {key}{text}."

    @property
    def is_null(self) -> bool:
        return self.node.tag == f"{_CORE}null"

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_map(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def child(self, node: yaml.Node, key: str) -> Item:
        path = f"{self.path}.{key}" if self.path else key
        return Item(self.reading, node, path, self._depth + 1)

    def text(self) -> str:
        """As it is written: `1.10` keeps its zero, `22:22` is no number of base sixty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            raise self.wrong("must be text")
        value = str(self.node.value)
        if "\0" in value:
            raise self.wrong("may not hold NUL characters")
        return value

    def plain_text(self) -> str:
        """Text of a key in which variables may not stand."""
        value = self.text()
        if "${" in value:
            raise self.wrong("variables may not stand here; write the value itself")
        return value

    def boolean(self) -> bool:
        value = self.plain_text()
        if value not in {"true", "false"}:
            raise self.wrong("must be true or false")
        return value == "true"

    def integer(self, least: int, most: int) -> int:
        value = self.plain_text()
        if not value.isascii() or not value.isdigit() or len(value) > 18:
            raise self.wrong("must be a whole number")
        if not least <= int(value) <= most:
            raise self.wrong(f"must be between {least} and {most}")
        return int(value)

    def choice(self, choices: Collection[str]) -> str:
        value = self.plain_text()
        if value not in choices:
            raise self.wrong(f"must be one of {', '.join(choices)}")
        return value

    def entries(self) -> list[Item]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("must be a list")
        return [self.child(node, str(n)) for n, node in enumerate(self.node.value)]

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.entries())

    def members(self) -> dict[str, Item]:
        """A map of free names; `<<` is merged in, a key written twice is refused."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("must be a map of keys and values")
        own: dict[str, Item] = {}
        merged: dict[str, Item] = {}
        for key_node, value_node in self.node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            if not key:
                raise self.child(key_node, "?").wrong("a key must be text")
            if key == _MERGE:
                for name, item in self._merged(value_node).items():
                    merged.setdefault(name, item)
                continue
            if key in own:
                line = key_node.start_mark.line + 1
                raise StackFileError(
                    f"{self.reading.file_name}, line {line}: "
                    f"{own[key].path} is written twice. Remove one of them."
                )
            own[key] = self.child(value_node, key)
        return {**merged, **own}

    def known(
        self, supported: Collection[str], instead: Mapping[str, str] | None = None
    ) -> dict[str, Item]:
        """A map with fixed keys: every other one is named, all of them in one go.

        Keys with `x-` are the writer's own, as in Compose; `x-trailer` is not.
        """
        found: dict[str, Item] = {}
        for key, item in self.members().items():
            if key in supported:
                found[key] = item
            elif not key.startswith("x-") or key == "x-trailer":
                hint = (instead or {}).get(key, f"known here: {', '.join(supported)}")
                self.reading.problems.append(item.sentence(f"is not supported; {hint}"))
        return found

    def _merged(self, node: yaml.Node) -> dict[str, Item]:
        source = Item(self.reading, node, self.path, self._depth + 1)
        if not source.is_list:
            return source.members()
        merged: dict[str, Item] = {}
        for part in node.value:
            for name, item in (
                Item(self.reading, part, self.path, self._depth + 2).members().items()
            ):
                merged.setdefault(name, item)
        return merged
