"""The part of the demo with images: a mixture is fitted to handwritten digits, and a classifier to its samples."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.schema import Schema
from sundog.demo.plots import draw_images
from sundog.fit.synthesizer import Synthesizer
from sundog.release.release import Release

EPSILON = 4.0  # with so few images, samples at ε = 1 are illegible
CLUSTERS = 10
SETTINGS: dict[str, Any] = {"epochs": 30, "chains": 100}  # enough for clusters of about 150 images, and fast

_HELD_OUT = 6  # every sixth image
_SHOWN = 8  # images in a row
_LEVELS = 17

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


def show_digits(folder: Path, schema: Schema, *, say: Callable[[str], None]) -> None:
    """Write `digits.npz`, fit a mixture to it, and write release, samples and a plot to `folder`."""
    (images, digits), (unseen, answers) = load_images()
    np.savez_compressed(folder / "digits.npz", image=images, digit=digits)
    started = time.perf_counter()
    synthesizer = Synthesizer(model="rbm", clusters=CLUSTERS, epsilon=EPSILON, seed=0, settings=SETTINGS)
    synthesizer.fit(folder / "digits.npz", schema, out=folder / "digits.sundog", overwrite=True)
    release = synthesizer.release_
    say(f"   {folder / 'digits.sundog'} written in {time.perf_counter() - started:.1f} s")

    release.write(folder / "synthetic-digits.npz", len(images), seed=7)
    with np.load(folder / "synthetic-digits.npz") as drawn:
        learned = score_forest(drawn["image"], drawn["digit"], unseen, answers)
    best = score_forest(images, digits, unseen, answers)
    say(f"   a classifier trained on synthetic digits only reads {learned:.0%} of {len(unseen)} held-out real ones;")
    say(f"   one trained on the private digits reads {best:.0%}; guessing would give 10%")
    picture = folder / "digits.png"
    draw_images(_sample_clusters(release, images, digits), picture, f"Ten clusters, ε = {EPSILON:g}")
    say(f"   plotted in {picture}, one row per cluster")


def load_images() -> tuple[tuple[Images, Labels], tuple[Images, Labels]]:
    """Return the images and labels to fit on, and held-out ones.

    >>> (images, digits), (unseen, _) = load_images()
    >>> images.shape, digits.shape, unseen.shape
    ((1497, 8, 8), (1497,), (300, 8, 8))
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, digits = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    held_out = np.arange(len(images)) % _HELD_OUT == 0
    return (images[~held_out], digits[~held_out]), (images[held_out], digits[held_out])


def score_forest(images: Images, digits: Labels, unseen: Images, answers: Labels) -> float:
    """Return the accuracy on unseen images of a random forest trained on these, all in black and white."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(200, random_state=0).fit(_binarise(images), digits)
    return float(forest.score(_binarise(unseen), answers))


def _binarise(images: Images) -> npt.NDArray[np.bool_]:
    """Return one row of black or white pixels per image, as the schema stores them."""
    return images.reshape(len(images), -1) * 2 >= _LEVELS


def _sample_clusters(release: Release, images: Images, digits: Labels) -> list[tuple[Any, Any]]:
    """Return samples of each cluster beside real images of its most frequent digit, in the order of digits."""
    rows = []
    for cluster in range(CLUSTERS):
        drawn = release.sample(_SHOWN, seed=7, where={"cluster": cluster}, as_="arrays")
        digit, _ = Counter(np.asarray(drawn["digit"]).astype(int).tolist()).most_common(1)[0]
        real = images[digits == digit][:_SHOWN]
        rows.append((digit, drawn["image"], _binarise(real).reshape(real.shape)))
    return [(drawn, real) for _, drawn, real in sorted(rows, key=lambda row: row[0])]
