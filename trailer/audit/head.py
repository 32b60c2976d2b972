"""The newest seal, written down outside the database: who cuts off the chain's end there does not
reach it here.

As good as it gets: a folder that can't be written costs this check, never a seal. What is written
down only has to be in the chain still, so servers with folders of their own need not share them.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings

from trailer.audit.models import AuditSeal
from trailer.audit.record import record
from trailer.secrets import is_signed, sign

logger = logging.getLogger(__name__)

HEAD_FALSE: Final = (
    "The seal that is written down outside the database has a false signature: it was not written "
    "by Trailer."
)
_PURPOSE: Final = "audit head"
_SHOWN: Final = 90
_DIGITS: Final = 19


@dataclass(frozen=True)
class Head:
    # As AuditSeal.head has it.
    text: str
    # A key that is gone is no lie: whoever can write here could as well remove the file.
    is_false: bool = False


def kept_head() -> Head | None:
    path = _path()
    if path is None:
        return None
    try:
        said = path.read_text(errors="replace").split()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn("audit head not read", str(path), str(error))
        return None
    if len(said) != 3:
        return Head(" ".join(said)[:_SHOWN], is_false=True)
    text, key, signature = said
    return Head(text, is_false=is_signed(text.encode(), _PURPOSE, key, signature) is False)


def head_missing(head: str) -> str:
    return f"There is no seal {head}: the end was cut off, or everything rewritten."


def head_problem() -> str:
    """Why the chain in the database is not the one that was known here; empty: it is."""
    head = kept_head()
    if head is None:
        return ""
    if head.is_false:
        return HEAD_FALSE
    number, _, digest = head.text.partition(":")
    # Another length would be no number to the database.
    is_number = number.isdecimal() and len(number) < _DIGITS
    if is_number and AuditSeal.objects.filter(number=int(number), digest=digest).exists():
        return ""
    return head_missing(head.text[:_SHOWN])


def keep_head(seal: AuditSeal) -> None:
    path = _path()
    if path is None:
        return
    line = " ".join((seal.head, *sign(seal.head.encode(), _PURPOSE))) + "\n"
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        if path.exists() and path.read_bytes() == line.encode():
            return
        temporary.write_text(line)
        temporary.replace(path)
    except OSError as error:
        _warn("audit head not kept", str(path), str(error))
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def head_forget(action: str) -> None:
    """On purpose: the chain as it is now counts from here on. The row says what was known."""
    head = kept_head()
    path = _path()
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    changes = [{"field": "head", "from": head.text, "to": None}] if head else []
    record(action, changes=changes)


@cache
def _warn(event: str, path: str, error: str) -> None:
    """Once: the same is tried every minute."""
    logger.warning(event, extra={"path": path, "error": error})


def _path() -> Path | None:
    name: str = settings.TRAILER_AUDIT_HEAD
    return Path(settings.TRAILER_DATA_DIR) / name if name else None
