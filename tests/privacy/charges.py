"""Charges for the tests of ledger and accountant."""

from sundog.privacy.events import (
    Charge,
    Event,
    Pure,
)

DELTA = 1e-5


def charge(event: Event, count: int = 1, purpose: str = "test") -> Charge:
    return Charge(event=event, count=count, purpose=purpose)


def charge_pure(epsilon: float, purpose: str = "test") -> Charge:
    return charge(Pure(epsilon=epsilon), purpose=purpose)
