"""Reads trailer.vars.yml: plain values, and values encrypted with age."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from workspaces.stacks.file.identity import decrypt_value
from workspaces.stacks.file.nodes import Reading
from workspaces.stacks.file.types import Variables

if TYPE_CHECKING:
    from workspaces.stacks.file.nodes import Item
    from workspaces.stacks.file.secret import Secret

VARIABLES_FILE_NAME: Final = "trailer.vars.yml"
VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def read_variables(text: str, identity: Secret) -> Variables:
    """`identity` is the stack's private key; an empty text (no such file) gives no variables."""
    if not text.strip():
        return Variables()
    reading = Reading(VARIABLES_FILE_NAME)
    top = reading.root(text).known(("values",))
    config: dict[str, str] = {}
    secrets: dict[str, Secret] = {}
    values = top.get("values")
    for name, item in values.members().items() if values and not values.is_null else ():
        if not VARIABLE_NAME.fullmatch(name):
            raise item.wrong("a name is letters, digits and _, not beginning with a digit")
        if item.is_map:
            secrets[name] = decrypt_value(name, _secure(item), identity)
        else:
            config[name] = item.text()
    reading.finish()
    return Variables(config=config, secrets=secrets)


def _secure(item: Item) -> str:
    known = item.known(("secure",))
    if "secure" not in known:
        raise item.wrong("must be a value, or secure: with an encrypted one")
    return known["secure"].text()
