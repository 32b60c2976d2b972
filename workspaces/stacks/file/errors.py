"""What is wrong with a stack's files, in sentences that name the key and the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence


class StackFileError(Invalid):
    """`sentences` has one entry per problem; the message is all of them."""

    code = "stack_file"

    def __init__(self, *sentences: str) -> None:
        super().__init__(" ".join(sentences))
        self.sentences: Sequence[str] = sentences


class VariablesError(StackFileError):
    """A variable is undefined, stands where it may not, or can't be decrypted."""

    code = "stack_variables"
