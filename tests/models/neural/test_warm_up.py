"""How a training begins: nothing is loaded that nobody asked for, and what takes long is loaded in the background."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch
from tests.training.in_memory import InMemory
from torch import Tensor

from sundog.models.neural import network_training
from sundog.models.neural.network_training import Adam, TrainableNetwork, train_networks, warm_up
from sundog.models.protocol import FitContext, Parts
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.training_plan import plan_training

FIT = """
import sys
import numpy as np
import sundog
schema = sundog.Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 6, "max_size": 2}}})
baskets = [[n % 3, 3 + n % 3] for n in range(300)]
sundog.Synthesizer("vae", 2.0, 1e-5, clusters=2, settings={"epochs": 2}).fit(baskets, schema)
assert "torch._dynamo" not in sys.modules
"""


def test_a_fit_does_not_load_the_compiler() -> None:
    found = subprocess.run([sys.executable, "-c", FIT], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("kind", [{"fused": True}, {"foreach": True}])
def test_adam_is_that_of_torch(kind: dict[str, bool]) -> None:
    theirs, ours = ([torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.zeros(2, 2))] for _ in range(2))
    optimisers = [torch.optim.Adam(theirs, lr=0.1, **kind), Adam(ours, lr=0.1, **kind)]  # type: ignore[arg-type]
    for step in range(5):
        for optimiser, weights in zip(optimisers, (theirs, ours), strict=True):
            optimiser.zero_grad()
            sum((w.square() * (w - step)).sum() for w in weights).backward()  # type: ignore[union-attr]
            optimiser.step()
        if step == 2:  # an interruption
            optimisers[1].load_state_dict(optimisers[1].state_dict())
    assert all(torch.equal(a, b) for a, b in zip(theirs, ours, strict=True))
    assert not any(w.requires_grad for w in optimisers[1].state[ours[0]].values())


class Line(TrainableNetwork):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(2, 1)

    def loss(self, batch: Tensor) -> Tensor:
        found: Tensor = self.line(batch).square().sum(dim=-1)
        return found


def test_a_training_waits_for_the_background_and_survives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def broken(device: str) -> None:
        time.sleep(0.2)
        begun.append(device)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(network_training, "_load_kernels", broken)
    warm_up.cache_clear()
    plan = plan_training(Budget(1.0, 1e-5), already=[], records=10, batch=5, epochs=1)
    examples = InMemory(torch.ones(10, 2))
    for _ in range(2):
        fresh = Ledger(epsilon=1.0, delta=1e-5)
        train_networks([Line()], examples, Parts.whole(10), plan, fresh, FitContext(), clip=1.0, learning_rate=0.1)
        assert begun == ["cpu"]  # and it is begun once
        assert fresh.charges
    warm_up.cache_clear()
