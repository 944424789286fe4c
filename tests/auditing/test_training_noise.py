"""The noise of whole fits: it has the planned scale in every layer, and none of it comes twice. On a GPU, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.auditing.games.broken_noise import weaken

from sundog.auditing.games.game import compute_promise_p_value, play_game
from sundog.auditing.games.model_games import make_model_game
from sundog.privacy.chacha import DeviceNormals
from sundog.privacy.noise import NoiseSource
from sundog.privacy.normals import Keystream
from sundog.training.speed.cuda_graphs import GraphedStep

FOLDER = Path(__file__).parents[2] / "benchmarks"
ALARM = 1e-9
LEVEL = 0.05

Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.usefixtures("no_fsync", "one_thread")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
MODELS = pytest.mark.parametrize("model", ["vae", "gan"])


@pytest.fixture(autouse=True)
def _among_the_benchmarks(monkeypatch: Patch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def fit_and_resume(model: str, device: str, folder: Path) -> list[Any]:
    """Fit once, and once more in two parts."""
    from audit_cuda import INTERRUPTED, fit

    out = folder / "fit.sundog"
    whole, lost = fit(model, device), fit(model, device, out=out, stop=INTERRUPTED)
    resumed = fit(model, device, out=out, resume=True)
    assert len(whole.normals) > len(resumed.normals) > len(whole.normals) - INTERRUPTED  # a block was lost
    return [whole, lost, resumed]


@DEVICES
@MODELS
def test_noise_has_its_scale_and_never_comes_twice(model: str, device: str, tmp_path: Path) -> None:
    from audit_cuda import RECORDS, compute_scale_p_value, count_repeats

    seen = fit_and_resume(model, device, tmp_path)
    gradients = [step for each in seen for step in each.gradients]
    assert compute_scale_p_value(gradients, 1.0) > ALARM
    assert all(compute_scale_p_value(gradients, scale) < ALARM for scale in (2 / 3, 3 / 2))
    assert max(norm for each in seen for norm in each.sums) < RECORDS
    assert count_repeats([step for each in seen for step in each.normals]) == 0


BOTH = {"dropout": 0.5, "weight_norm": True}


@pytest.mark.parametrize("seed", [None, 3], ids=["secure", "seeded"])
@pytest.mark.parametrize(
    ("device", "settings"),
    [
        pytest.param("cpu", BOTH, id="cpu-both"),
        pytest.param("cuda", {}, id="cuda-plain", marks=needs_gpu),
        pytest.param("cuda", {"dropout": 0.5}, id="cuda-dropout", marks=needs_gpu),
        pytest.param("cuda", {"weight_norm": True}, id="cuda-weight-norm", marks=needs_gpu),
        pytest.param("cuda", BOTH, id="cuda-both", marks=needs_gpu),
    ],
)
def test_noise_is_new_in_each_step_of_a_critic(
    device: str, settings: dict[str, Any], seed: int | None, monkeypatch: Patch
) -> None:
    """Whatever the critic, and wherever noise comes from. On a GPU, steps are replayed from the third on."""
    from audit_cuda import RECORDS, compute_scale_p_value, count_repeats, fit

    captured: list[GraphedStep] = []
    capture = GraphedStep._capture

    def note_capture(step: GraphedStep) -> torch.cuda.CUDAGraph:
        captured.append(step)
        return capture(step)

    monkeypatch.setattr(GraphedStep, "_capture", note_capture)

    def fit_critic() -> Any:
        return fit("gan", device, noise=None if seed is None else NoiseSource.seeded(seed), **settings)

    seen = fit_critic()
    assert len(captured) == (device == "cuda")
    assert len(seen.normals) >= 10
    for gradient in seen.gradients:  # the noise of no step is hidden by that of the others
        assert compute_scale_p_value([gradient], 1.0) > ALARM
        assert max(compute_scale_p_value([gradient], scale) for scale in (2 / 3, 3 / 2)) < ALARM
    assert max(seen.sums) < RECORDS
    assert count_repeats(seen.normals) == 0
    if seed is not None:
        np.testing.assert_array_equal(fit_critic().normals, seen.normals)


def repeat_in_each_step(patch: Patch) -> None:
    """Each step begins the stream anew."""
    words, fill = Keystream.draw_words, DeviceNormals.fill

    def draw_words(stream: Keystream, shape: tuple[int, ...]) -> Any:
        stream._message = 0
        return words(stream, shape)

    def fill_again(stream: DeviceNormals, out: Any) -> Any:
        stream.message.zero_()
        return fill(stream, out)

    patch.setattr(Keystream, "draw_words", draw_words)
    patch.setattr(DeviceNormals, "fill", fill_again)


def repeat_after_resume(patch: Patch) -> None:
    """Each process has the same key."""
    patch.setattr(NoiseSource, "_draw_secret", lambda source: bytes(32))


@DEVICES
@pytest.mark.parametrize("plant", [repeat_in_each_step, repeat_after_resume])
def test_noise_that_comes_twice_is_found(plant: Callable[[Patch], None], device: str, tmp_path: Path) -> None:
    from audit_cuda import count_repeats

    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        seen = fit_and_resume("vae", device, tmp_path)
    assert count_repeats([step for each in seen for step in each.normals]) > 0


@DEVICES
def test_noise_that_is_too_small_is_found(device: str, monkeypatch: Patch) -> None:
    from audit_cuda import RECORDS, compute_scale_p_value, fit

    own = NoiseSource.standard_normal_
    monkeypatch.setattr(NoiseSource, "standard_normal_", lambda source, out: own(source, out).mul_(2 / 3))
    seen = fit("vae", device)
    assert compute_scale_p_value(seen.gradients, 1.0) < ALARM < compute_scale_p_value(seen.gradients, 2 / 3)
    assert max(seen.sums) < RECORDS  # all layers got what was drawn


@needs_gpu
@MODELS
def test_a_game_on_a_gpu(model: str) -> None:
    """A correct fit keeps its promise there, and one without noise does not."""
    game = make_model_game(model, epsilon=4.0, device="cuda")
    assert compute_promise_p_value(play_game(game, runs=100, seed=0)) > LEVEL
    assert compute_promise_p_value(play_game(weaken(game, 1e-3), runs=40, seed=0)) < 0.01


@needs_gpu
@MODELS
def test_processes_draw_noise_of_their_own(model: str) -> None:
    from audit_cuda import count_repeats, watch_processes

    assert count_repeats([step for each in watch_processes(model, "cuda") for step in each.normals]) == 0
