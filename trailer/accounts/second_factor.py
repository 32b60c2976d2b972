"""A second factor: codes of an app (RFC 6238), and recovery codes for a lost phone."""

from __future__ import annotations

import secrets as entropy
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyotp
import segno
from django.db import transaction
from django.utils import timezone

from trailer.accounts.models import RecoveryCode, SecondFactor, User
from trailer.audit.record import record
from trailer.errors import Conflict, Invalid
from trailer.rows import row_lock
from trailer.sealed import seal, unseal
from trailer.secrets import digest

if TYPE_CHECKING:
    from trailer.policy import Actor

ISSUER: Final = "Trailer"
RECOVERY_CODES: Final = 10
_STEP: Final = 30
# Clocks of phones may be off by one step.
_OFFSETS: Final = (0, -1, 1)
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True)
class Enrolment:
    """Shown once, while it is being set up."""

    secret: str
    uri: str
    # An image of the address as a data URI, to be photographed by the app.
    picture: str


def is_on(user: User) -> bool:
    return SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).exists()


def codes_left(user: User) -> int:
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def factor_begin(*, actor: Actor) -> Enrolment:
    """A new secret, which counts for nothing until a code made with it comes back."""
    with transaction.atomic():
        user = row_lock(User.objects.all(), actor.pk)
        if is_on(user):
            raise Conflict("The second factor is on already. Turn it off first.")
        secret = pyotp.random_base32()
        sealed = seal(SecondFactor(user=user), "secret_token", secret)
        SecondFactor.objects.update_or_create(
            user=user, defaults={"secret_token": sealed, "last_step": 0}
        )
        record("user.second_factor_begin", user, actor=actor)
    uri = pyotp.TOTP(secret).provisioning_uri(name=user.username, issuer_name=ISSUER)
    return Enrolment(
        secret=secret, uri=uri, picture=segno.make(uri).svg_data_uri(scale=4, light="white")
    )


def factor_confirm(*, actor: Actor, code: str) -> list[str]:
    """From now on signing in takes a code. Answers the recovery codes, which are shown once."""
    with transaction.atomic():
        user = row_lock(User.objects.all(), actor.pk)
        factor = SecondFactor.objects.filter(user=user, confirmed_at=None).first()
        if factor is None:
            raise Conflict("There is no second factor to confirm. Begin with setting one up.")
        if not _matches(factor, code):
            raise Invalid.field(
                "code", "This code is not right. Check the clock of your phone and try the next."
            )
        SecondFactor.objects.filter(pk=factor.pk).update(confirmed_at=timezone.now())
        record("user.second_factor_on", user, actor=actor)
        return _new_codes(user)


def factor_remove(*, actor: Actor, user: User) -> None:
    """The caller has checked the password, or that an administrator asks."""
    with transaction.atomic():
        SecondFactor.objects.filter(user=user).delete()
        RecoveryCode.objects.filter(user=user).delete()
        record("user.second_factor_off", user, actor=actor)


def recovery_codes_renew(*, actor: Actor) -> list[str]:
    """The old ones stop working at once."""
    with transaction.atomic():
        user = row_lock(User.objects.all(), actor.pk)
        if not is_on(user):
            raise Conflict("There is no second factor. Set one up first.")
        record("user.recovery_codes", user, actor=actor)
        return _new_codes(user)


def code_is_right(user: User, code: str) -> bool:
    """Each code works once: neither a second time in its half minute nor a spent recovery code."""
    factor = SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).first()
    if factor is None:
        return False
    return _matches(factor, code) or _spend(user, code)


def _matches(factor: SecondFactor, code: str) -> bool:
    given = code.replace(" ", "")
    totp, now = pyotp.TOTP(unseal(factor, "secret_token")), int(time.time())
    for offset in _OFFSETS:
        moment = now + offset * _STEP
        if pyotp.utils.strings_equal(totp.at(moment), given):
            step = moment // _STEP
            # Only one of two requests with the same code moves the mark.
            newer = SecondFactor.objects.filter(pk=factor.pk, last_step__lt=step)
            return newer.update(last_step=step) == 1
    return False


def _spend(user: User, code: str) -> bool:
    given = digest(code.strip().lower())
    unused = RecoveryCode.objects.filter(user=user, digest=given, used_at=None)
    return unused.update(used_at=timezone.now()) == 1


def _new_codes(user: User) -> list[str]:
    RecoveryCode.objects.filter(user=user).delete()
    codes = ["-".join(_letters(4) for _ in range(4)) for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, digest=digest(code)) for code in codes
    )
    return codes


def _letters(count: int) -> str:
    return "".join(entropy.choice(_LETTERS) for _ in range(count))
