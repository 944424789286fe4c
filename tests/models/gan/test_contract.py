"""What every model promises, of the adversarial network."""

from __future__ import annotations

import pytest
import torch
from tests.contracts.model_contract import ModelContract
from tests.models.gan.material import QUICK

from sundog.models.gan import training
from sundog.models.gan.gan import Gan
from sundog.models.neural import mean_matching


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is promised here is not how good records are."""
    torch.set_num_threads(1)
    monkeypatch.setattr(training, "_BATCH", 32)
    monkeypatch.setattr(mean_matching, "_ROUNDS", 2)


class TestGan(ModelContract):
    model = Gan
    settings = QUICK
