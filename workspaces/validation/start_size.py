"""How much a container's programs are started with: environment and arguments.

Linux starts a program with at most 2 MiB of both (a quarter of the 8 MiB of stack that engines
give), where each entry also counts for a pointer. Half of it is left to the image's own variables
and to the programs that the workspace starts itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workspaces.fields import WorkspaceFields

MOST_START_BYTES: Final = 1024 * 1024
# Fields that this judges.
START_FIELDS: Final = ("env", "secret_env", "command", "health_check")
# The NUL at its end, and the pointer to it.
_ENTRY_BYTES: Final = 1 + 8
_MIB: Final = 1024 * 1024


def check_start_size(fields: WorkspaceFields) -> None:
    """Refuses what would end in “argument list too long” at each start."""
    test = () if fields.health_check is None else fields.health_check.test
    environment = {"env": _pairs_size(fields.env), "secret_env": _pairs_size(fields.secret_env)}
    arguments = {"command": _size(fields.command), "health_check": _size(test)}
    # A health check runs beside the command, with the same environment.
    total = sum(environment.values()) + max(arguments.values())
    if total <= MOST_START_BYTES:
        return
    sizes = environment | arguments
    raise Invalid.field(
        max(sizes, key=lambda name: sizes[name]),
        f"Environment and command have {total / _MIB:.1f} MiB together, but a container is "
        "started with at most 1 MiB. Put long values into files on a volume.",
    )


def _pairs_size(values: Mapping[str, str]) -> int:
    return _size(f"{name}={value}" for name, value in values.items())


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) + _ENTRY_BYTES for text in texts)
