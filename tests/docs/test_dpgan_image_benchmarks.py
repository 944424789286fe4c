"""Parts of the benchmarks of image GANs: the cost of groups, kept fits, codes of images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sundog
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Gaussian

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _among_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def test_k_groups_cost_as_much_as_k_gaussians() -> None:
    from dpgan_steps import DELTA, SETTINGS

    for setting in SETTINGS:
        apart = [Charge(event=Gaussian(noise_multiplier=setting.sigma), count=setting.groups, purpose="groups")]
        joint = [Charge(event=Gaussian(noise_multiplier=setting.joint(setting.groups)), purpose="one")]
        assert compute_epsilon(joint, delta=DELTA) == pytest.approx(compute_epsilon(apart, delta=DELTA))


@pytest.mark.parametrize("method", ["pld", "rdp", "moments"])
@pytest.mark.parametrize("groups", [1, 5])
def test_the_allowed_steps_are_within_the_budget_and_more_are_not(groups: int, method: Any) -> None:
    from dpgan_steps import SETTINGS, account_steps, count_allowed_steps

    mnist = SETTINGS[0]
    steps = count_allowed_steps(mnist, groups, method)
    assert account_steps(mnist, groups, steps, method) <= mnist.epsilon
    assert account_steps(mnist, groups, math.ceil(1.002 * steps) + 1, method) > mnist.epsilon


def test_a_kept_fit_is_not_repeated(tmp_path: Path) -> None:
    from dpgan.images import REAL, Fit, Scores
    from dpgan_images import run_once

    class Counted:
        folder, train, done = tmp_path, range(10), 0

        def run(self, _: Fit) -> Scores:
            self.done += 1
            return Scores(0.5, 2.0 + self.done, 0.1)

    trials: Any = Counted()
    asked = Fit("kinds+bounds", 4.0, 1, "cpu", ("groups=5",), public=True)
    for fit in (asked, REAL):
        assert run_once(trials, fit) == run_once(trials, fit)
    assert trials.done == 2
    assert run_once(trials, Fit("kinds+bounds", 4.0, 1, "cpu", ("groups=6",), public=True)).inception == 5.0


def test_a_control_has_the_mean_image_of_each_class() -> None:
    from dpgan.images import average_classes
    from image_scores import load_small_digits

    train, _ = load_small_digits()
    made = average_classes(train)
    images, labels = train.codes["image"].astype(float), train.codes["label"]
    for row in (0, 7, 50):
        expected = np.mean([image for image, label in zip(images, labels, strict=True) if label == labels[row]], axis=0)
        assert np.abs(made.codes["image"][row] - expected).max() <= 0.5
    assert made.codes["label"].tolist() == labels.tolist()


def test_codes_belong_to_their_images() -> None:
    from dpgan_semisupervised import draw_pool

    rng = np.random.default_rng(0)
    image, label = {"type": "image", "shape": [4, 4], "levels": 256}, {"type": "categorical", "values": ["a", "b"]}
    schema = sundog.Schema.from_dict({"columns": {"image": image, "label": label}, "reviewed": True})
    labels = rng.integers(0, 2, 200)
    images = np.broadcast_to(255 * labels[:, None, None], (200, 4, 4)).astype(np.uint8)
    synth = sundog.Synthesizer("gan", 20.0, 1e-5, seed=0, settings={"epochs": 1, "hidden": 16, "latent": 3})
    release = synth.fit({"image": images, "label": np.array(["a", "b"])[labels]}, schema).release_
    whole = draw_pool(release, 50, seed=0)
    model: Any = release.model
    object.__setattr__(model.sampler, "rows", 7)  # in pieces
    pool = draw_pool(release, 50, seed=0)
    assert np.array_equal(pool.codes, whole.codes)
    codes, drawn = pool(20, rng)
    assert codes.shape == (20, 5)
    assert pool.labels.tolist() == pool.codes[:, 3:].argmax(axis=1).tolist()
    light = pool.images.mean(axis=(1, 2, 3))
    assert light[pool.labels == 1].mean() > light[pool.labels == 0].mean() + 0.3
    assert all(any(np.array_equal(one, other) for other in pool.images) for one in drawn)
