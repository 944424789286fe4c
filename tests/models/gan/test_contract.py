"""What every model promises, of the adversarial network."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tests.contracts.material import plain
from tests.contracts.model_contract import ModelContract
from tests.models.gan.material import QUICK

from sundog.data.records import Records
from sundog.models import calibration
from sundog.models.base import Model, Plan
from sundog.models.gan import training
from sundog.models.gan.gan import Gan
from sundog.privacy.ledger import Ledger

_FITS: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is promised here is not how good records are."""
    torch.set_num_threads(1)
    monkeypatch.setattr(training, "_BATCH", 32)
    monkeypatch.setattr(calibration, "_ROUNDS", 2)


class TestGan(ModelContract):
    model = Gan
    settings = QUICK

    def fit(self, records: Records, *, seed: int = 0) -> tuple[Model, Plan, Ledger]:
        """A fit, kept for the next test with the same records."""
        codes = {name: plain(codes) for name, codes in records.codes.items()}
        key = json.dumps([records.schema.to_dict(), codes, seed])
        if key not in _FITS:
            _FITS[key] = super().fit(records, seed=seed)
        found: tuple[Model, Plan, Ledger] = _FITS[key]
        return found
