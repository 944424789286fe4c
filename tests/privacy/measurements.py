"""Measurements, and a process that dies."""

from __future__ import annotations

from sundog.privacy.events import Charge, Pure

NORM = Charge(event=Pure(epsilon=0.1), purpose="norm")


class Killed(BaseException):
    """Nothing that runs afterwards in this process."""


TRAINING = Charge(event=Pure(epsilon=0.01), count=6, purpose="training")
BLOCK = TRAINING.model_copy(update={"count": 2})
