"""The file with the state of a training: complete, private, and refused when it is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from tests.training.bench import BLOCK, Bench, stop_after_save

from sundog.errors import SundogError
from sundog.privacy.checkpoint import Checkpoint
from sundog.training.training_state import TrainingState, load_state, pack, save_state, unpack


def test_any_optimiser_comes_back(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.LBFGS, torch.optim.ASGD):
        weights = torch.nn.Parameter(torch.randn(4, 3))
        optimizer: Any = kind([weights], lr=0.1)
        for _ in range(3):
            weights.grad = torch.randn(4, 3)
            optimizer.step(lambda weights=weights: weights.square().sum())
        save_state(checkpoint, "training", TrainingState({}, 3, 1, {"optimizer": optimizer.state_dict()}))
        state = load_state(checkpoint, "training")
        assert state is not None
        tensors: tuple[dict[str, Any], ...] = ({}, {})
        structures = [
            pack(value, kept)
            for value, kept in zip((optimizer.state_dict(), state.parts["optimizer"]), tensors, strict=True)
        ]
        assert structures[0] == structures[1]
        assert {n: t.tolist() for n, t in tensors[0].items()} == {n: t.tolist() for n, t in tensors[1].items()}
        again: Any = kind([weights], lr=0.5)
        again.load_state_dict(state.parts["optimizer"])
    checkpoint.remove()


def test_numbers_and_structures_come_back_as_they_were() -> None:
    value: dict[Any, Any] = {
        "a": [1, 2.5, (None, True)],
        7: {"x": (1e-300, float("inf"))},
        "t": torch.arange(3, dtype=torch.bfloat16),
    }
    tensors: dict[str, torch.Tensor] = {}
    again = unpack(json.loads(json.dumps(pack(value, tensors))), tensors)
    assert torch.equal(again.pop("t"), value.pop("t"))
    assert again == value
    with pytest.raises(TypeError, match="/f: a function cannot be saved"):
        pack({"f": damage}, {})


def test_parameters_that_share_memory_are_kept(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    whole = torch.arange(10.0)
    save_state(checkpoint, "training", TrainingState({}, 1, 1, {"a": whole[:5], "b": whole[3:], "c": whole}))
    state = load_state(checkpoint, "training")
    assert state is not None
    assert state.parts["b"].tolist() == [3, 4, 5, 6, 7, 8, 9]
    checkpoint.remove()


def damage(raw: bytes, harm: str) -> bytes:
    if harm == "bytes":
        return b"my shopping list"
    if harm == "empty":
        return b""
    if harm == "torn":
        return raw[: len(raw) // 2]
    tensors = safetensors.torch.load(raw)
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    state = json.loads(header["__metadata__"]["state"])
    if harm == "no metadata":
        return bytes(safetensors.torch.save(tensors))
    if harm == "no parts":
        state["parts"] = {"dict": []}
    elif harm == "tensor gone":
        tensors.pop("/module/0.weight")
    elif harm == "shape":
        tensors["/module/0.weight"] = tensors["/module/0.weight"][:, :1].contiguous()
    elif harm == "done":
        state["done"] = "3"
    elif harm == "version":
        state["version"] = 99
    elif harm == "kind":
        state["parts"] = {"code": "print()"}
    elif harm == "deep":
        return bytes(safetensors.torch.save(tensors, {"state": '{"tuple":[' * 100_000}))
    return bytes(safetensors.torch.save(tensors, {"state": json.dumps(state)}))


HARMS = [
    "bytes",
    "empty",
    "torn",
    "no metadata",
    "no parts",
    "tensor gone",
    "shape",
    "done",
    "version",
    "kind",
    "deep",
]


def test_a_damaged_state_is_one_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(1))
    path = Checkpoint.locate_folder(bench.out) / "training.safetensors"
    raw = path.read_bytes()
    for harm in HARMS:
        path.write_bytes(damage(raw, harm))
        with pytest.raises(SundogError, match=r"training\.safetensors: cannot be read; delete the folder") as caught:
            bench.run()
        assert "\n" not in str(caught.value)
        assert bench.paid == BLOCK
    path.write_bytes(raw)
    bench.run()


def test_half_written_states_are_removed(tmp_path: Path) -> None:
    """They hold results of steps that are run again: two results of one charge may not lie around."""
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(1))
    left = Checkpoint.locate_folder(bench.out) / ".training.safetensors.0123abcd.partial"
    left.write_bytes(b"what a killed process was writing")
    bench.run()
    assert not left.exists()


def test_the_state_holds_no_example_and_no_batch(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    raw = (Checkpoint.locate_folder(bench.out) / "training.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    state = json.loads(header["__metadata__"]["state"])
    assert set(state) == {"version", "plan", "done", "seed", "parts"}
    assert {name for name, _ in state["parts"]["dict"]} == {"module", "optimizer", "bounds", "average", "kept"}
