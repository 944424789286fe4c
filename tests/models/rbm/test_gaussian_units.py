"""The Gaussian units of the Boltzmann machine: what is drawn from them, and what they learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.contracts.material import schema_of
from tests.models.rbm.test_rbm import fit_rbm

from sundog.data.records import Records
from sundog.models.neural.features import Features
from sundog.models.rbm.network import RbmNetwork
from sundog.models.rbm.rbm import Rbm


def test_gaussian_units_learn_how_intensities_go_together() -> None:
    schema = schema_of({"picture": {"type": "image", "shape": [2, 2], "levels": 256}})
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.8, (4000, 1, 1))
    pixels = (255 * np.clip(base + 0.1 * rng.standard_normal((4000, 2, 2)), 0, 1)).astype(np.uint8)
    settings: dict[str, Any] = {"visible": "gaussian", "deviation": 0.1, "hidden": 8, "clip": 20, "learning_rate": 0.06}
    model = fit_rbm(Records(schema, {"picture": pixels}, 4000), **settings)
    drawn = model.sample(4000, np.random.default_rng(0), {})["picture"].reshape(4000, 4).astype(float)
    real = pixels.reshape(4000, 4).astype(float)
    assert np.abs(drawn.mean(axis=0) - real.mean(axis=0)).max() < 15
    assert drawn.std(axis=0) == pytest.approx(real.std(axis=0), rel=0.15)
    assert np.corrcoef(drawn.T) == pytest.approx(np.corrcoef(real.T), abs=0.1)  # about ¾, and neither none nor all
    assert len(np.unique(drawn, axis=0)) > 3900


def test_gaussian_units_are_drawn_around_what_the_hidden_ones_say() -> None:
    """Without weights an intensity is normal, with the deviation that was set; so it is in the chain and in records."""
    schema = schema_of({"picture": {"type": "image", "shape": [2, 2], "levels": 256}})
    network = RbmNetwork(Features(schema), torch.full((4,), 0.4), hidden=3, chains=4000, deviation=0.1)
    torch.nn.init.zeros_(network.hidden.weight)
    drawn = Rbm(schema, network, 100).sample(4000, np.random.default_rng(0), {})["picture"].reshape(-1) / 255
    assert stats.kstest(drawn, stats.norm(0.4, 0.1).cdf).statistic < 0.025  # of which rounding is 0.01
    for wrong in (0.1 * 2 / 3, 0.1 * 3 / 2):
        assert stats.kstest(drawn, stats.norm(0.4, wrong).cdf).statistic > 0.05
