"""The same on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import random_records
from tests.models.gan.material import DELTA, GAPS, IMAGES, QUICK, TABLE

from sundog.data.schema import Schema
from sundog.models.gan.configuration import GanConfiguration
from sundog.models.gan.gan import Gan
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Budget, Ledger

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize(
    ("schema", "settings"),
    [
        (IMAGES, {"classifier": 0.3}),
        (IMAGES, {"classifier": 0.0, "objective": "wasserstein"}),
        (IMAGES, {"recognised": 0.6, "decay": 0.5, "groups": "weights and biases"}),
        (GAPS, {"shape": "lstm", "classifier": 0.3}),
        (TABLE, {"classifier": 0.3}),
        (IMAGES, {"classifier": 0.0, "objective": "wasserstein", "dropout": 0.5, "weight_norm": True}),
    ],
    ids=["images", "wasserstein", "balance", "series", "table", "dropout and weight normalisation"],
)
def test_a_fit_on_a_gpu_spends_its_plan_and_can_be_sampled(schema: Schema, settings: dict[str, Any]) -> None:
    records = random_records(schema, 300, 0)
    chosen = {**QUICK, "condition": "label", **settings}
    plan = Gan.plan(schema, Budget(5.0, DELTA), GanConfiguration.parse(chosen), already=(), records=300)
    ledger = Ledger(epsilon=5.0, delta=DELTA)
    model = Gan.fit(records, plan, ledger, FitContext(seed=0, device="cuda"))
    spent = {charge.purpose: charge.count for charge in plan.charges}
    assert {name: sum(c.count for c in ledger.charges if c.purpose == name) for name in spent} == spent
    assert set(model.sample(50, np.random.default_rng(0), {"label": 1})["label"]) == {1}
    assert all(tensor.device.type == "cpu" for tensor in model.generator.state_dict().values())
