"""Enrolment is the one agent route without a credential, so guesses are counted per address."""

from __future__ import annotations

from typing import Final

from trailer.accounts.attempts import Attempts, neighbourhood

_PER_MINUTE: Final = 20


def enrolment_throttle(address: str) -> None:
    limits = {f"enrol\0{neighbourhood(address)}": _PER_MINUTE}
    Attempts(limits, noun="enrolments from this address").count()
