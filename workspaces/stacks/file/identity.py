"""The age key of a stack, and values that only this stack can read.

Each stack has a key of its own: with one key for all, a repository could hold another stack's
encrypted value and have it decrypted into its own container.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import pyrage

from workspaces.stacks.file.errors import VariablesError
from workspaces.stacks.file.secret import Secret

_ARMOR: Final = "-----BEGIN AGE ENCRYPTED FILE-----"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """`recipient` is public: whoever has it can encrypt for the stack."""

    private: Secret
    recipient: str


def new_identity() -> Identity:
    identity = pyrage.x25519.Identity.generate()
    return Identity(private=Secret(str(identity)), recipient=str(identity.to_public()))


def encrypt_value(plain: str, recipient: str) -> str:
    """What stands under `secure:` in trailer.vars.yml; one line."""
    to = pyrage.x25519.Recipient.from_str(recipient)
    return base64.b64encode(pyrage.encrypt(plain.encode(), [to])).decode()


def decrypt_value(name: str, secure: str, private: Secret) -> Secret:
    """Takes the one line that `encrypt_value` makes, and what `age --armor` prints."""
    wrong = VariablesError(
        f"The encrypted value of {name} can't be decrypted with this stack's key. Encrypt it "
        "again with the key that the stack's page shows."
    )
    try:
        raw = secure.strip()
        sealed = raw.encode() if raw.startswith(_ARMOR) else base64.b64decode(raw, validate=False)
        identity = pyrage.x25519.Identity.from_str(private.reveal())
        return Secret(pyrage.decrypt(sealed, [identity]).decode())
    except (pyrage.DecryptError, pyrage.IdentityError, binascii.Error, ValueError) as error:
        raise wrong from error
