"""What several tests of the adversarial network share."""

from __future__ import annotations

import pytest

from sundog.models.gan import gan_training
from sundog.models.neural import mean_matching


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train faster and worse, for tests of anything but the quality of records."""
    monkeypatch.setattr(gan_training, "_BATCH", 32)
    monkeypatch.setattr(mean_matching, "_ROUNDS", 2)
