"""What the adversarial network learns, at a budget that is large enough for a training of seconds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from tests.contracts.material import schema_of
from tests.models.gan.material import fit_gan
from tests.models.twin_columns import pair_distance, table

from sundog.data.records import Records
from sundog.models.gan import gan_training
from sundog.models.gan.gan import Gan

EPSILON = 20.0
Codes = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gan_training, "_BATCH", 256)


# --- tables ---


@cache
def fit_table(condition: str | None) -> Gan:
    sizes: dict[str, Any] = {"hidden": 32, "latent": 8, "batch": 200, "epochs": None, "generator_rate": 0.005}
    return fit_gan(table(), epsilon=EPSILON, condition=condition, **sizes)


def shuffle(codes: dict[str, Any]) -> dict[str, Any]:
    """The same marginals, and nothing between the columns."""
    rng = np.random.default_rng(1)
    return {name: rng.permutation(column) for name, column in codes.items()}


@pytest.mark.parametrize("condition", [None, "kind"])
def test_it_learns_what_belongs_together(condition: str | None) -> None:
    drawn = fit_table(condition).sample(20_000, np.random.default_rng(0), {})
    far = pair_distance(shuffle(table().codes), table().codes)
    assert far > 0.4
    assert pair_distance(drawn, table().codes) < (0.25 if condition is None else 0.05) * far


@pytest.mark.parametrize("condition", [None, "kind"])
def test_means_are_as_they_were_measured(condition: str | None) -> None:
    drawn = fit_table(condition).sample(20_000, np.random.default_rng(0), {})
    for name, count in (("kind", 4), ("twin", 4)):
        mine, real = (np.bincount(codes[name], minlength=count) / len(codes[name]) for codes in (drawn, table().codes))
        assert mine == pytest.approx(real, abs=0.03)


@pytest.mark.parametrize("condition", [None, "kind"])
def test_conditions_change_the_other_columns(condition: str | None) -> None:
    """Whether it was told the column in training or has to look for what explains it."""
    drawn = fit_table(condition).sample(3000, np.random.default_rng(3), {"kind": 0})
    assert set(drawn["kind"].tolist()) == {0}
    least = 0.65 if condition is None else 0.9
    assert float(np.mean(drawn["twin"] == 0)) > least  # 0.925 in the data, 0.17 without the condition
    assert float(np.mean(drawn["size"] < 250)) > least + 0.05  # 1 in the data, 0.1 without
    both = fit_table(condition).sample(2000, np.random.default_rng(3), {"twin": 3, "size": 800})
    assert set(both["size"].tolist()) == {800}
    assert float(np.mean(both["kind"] == 3)) > 0.9


def test_conditions_are_as_likely_as_they_were() -> None:
    for condition in (None, "kind"):
        found = np.exp([fit_table(condition).log_evidence({"kind": kind}) for kind in range(4)])
        assert found == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.03)


# --- images ---

DIGITS = schema_of(
    {
        "image": {"type": "image", "shape": [8, 8], "levels": 17},
        "label": {"type": "categorical", "values": ["0 or 1", "2 or 4"]},
    }
)


@cache
def digits() -> tuple[Codes, Codes]:
    """Of two digits each, so that the mean of a class is like neither of them, and like the other class."""
    images, digit = load_digits(return_X_y=True)
    chosen = np.isin(digit, (0, 1, 2, 4))
    return images[chosen].reshape(-1, 8, 8).astype(np.uint8), np.isin(digit[chosen], (2, 4)).astype(np.uint8)


def accuracy(images: Codes, labels: Codes, neighbours: int) -> float:
    """On the real ones that no training saw, of a classifier that learns from these."""
    real, truth = (part[500:] for part in digits())
    classifier = KNeighborsClassifier(neighbours).fit(images.reshape(len(images), 64), labels)
    return float(classifier.score(real.reshape(len(real), 64), truth))


def gap(images: Codes, labels: Codes) -> float:
    """How far those real ones are from the nearest of these with the same label, on average."""
    real, truth = (part[500:] for part in digits())
    far = [
        cdist(real[truth == label].reshape(-1, 64), images[labels == label].reshape(-1, 64)).min(axis=1)
        for label in range(2)
    ]
    return float(np.concatenate(far).mean())


@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        ("mlp", {"hidden": 64, "batch": 200, "epochs": 20, "learning_rate": 0.003, "generator_rate": 0.003}),
        ("auto", {"hidden": 32, "batch": 120, "epochs": 15, "learning_rate": 0.005, "generator_rate": 0.005}),
    ],
    ids=["mlp", "conv"],  # what is chosen for images has a label classifier, too
)
def test_samples_say_more_about_images_than_their_means_do(shape: str, settings: dict[str, Any]) -> None:
    images, labels = (part[:500] for part in digits())
    means = np.stack([images[labels == label].mean(axis=0) for label in range(2)])
    rows = np.random.default_rng(0).integers(0, 500, 4000)  # each several times, so that the noise is small
    records = Records(DIGITS, {"image": images[rows], "label": labels[rows]}, 4000)
    model = fit_gan(records, epsilon=EPSILON, shape=shape, latent=8, **settings)
    assert (model.config["shape"], model.config["named"]) == (("conv", True) if shape == "auto" else ("mlp", False))
    assert model.config["condition"] == "label"
    drawn = model.sample(1000, np.random.default_rng(0), {})
    alone = accuracy(means, np.arange(2), 1)
    assert alone < 0.8
    assert accuracy(drawn["image"], drawn["label"], 5) > 0.9
    spread = np.stack([drawn["image"][drawn["label"] == label].std(axis=0) for label in range(2)])
    random = np.random.default_rng(0).standard_normal(drawn["image"].shape)
    scattered = means[drawn["label"]] + spread[drawn["label"]] * random  # as different from one another, by chance
    assert gap(drawn["image"], drawn["label"]) < 0.75 * gap(scattered, drawn["label"])


# --- bars: all that tells the two kinds apart is between the pixels ---

BARS = schema_of(
    {
        "image": {"type": "image", "shape": [8, 8], "levels": 17},
        "label": {"type": "categorical", "values": ["flat", "steep"]},
    }
)


def bars(n: int, seed: int) -> Records:
    """Two bright rows, or columns, anywhere: the mean image of both kinds is the same."""
    rng = np.random.default_rng(seed)
    steep, first = rng.integers(0, 2, n), rng.integers(0, 8, n)
    images = rng.integers(0, 3, (n, 8, 8))
    lines = (np.arange(8) - first[:, None]) % 8 < 2
    images += 13 * np.where(steep[:, None, None], lines[:, None, :], lines[:, :, None])
    return Records(BARS, {"image": images.astype(np.uint8), "label": steep.astype(np.uint8)}, n)


def test_samples_of_a_fit_with_a_classifier_teach_what_their_labels_mean() -> None:
    real = bars(600, seed=1).codes
    sizes: dict[str, Any] = {"hidden": 32, "latent": 8, "batch": 150}

    def worth(**settings: Any) -> float:
        """Of a classifier that learns from samples, on real records."""
        model = fit_gan(bars(3000, seed=0), epsilon=50.0, **sizes, **settings)
        drawn = model.sample(1000, np.random.default_rng(0), {})
        classifier = KNeighborsClassifier(5).fit(drawn["image"].reshape(-1, 64), drawn["label"])
        return float(classifier.score(real["image"].reshape(-1, 64), real["label"]))

    begun = worth(classifier=0.0, epochs=0.05)
    learned = worth(classifier=0.3, epochs=6, learning_rate=0.002, generator_rate=0.008)
    assert begun < 0.6  # chance is 0.5
    assert learned > max(0.7, begun + 0.15)
