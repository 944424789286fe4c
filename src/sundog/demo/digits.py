"""The act with images: a mixture learns handwritten digits, and what it draws teaches a classifier to read."""

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

EPSILON = 4.0  # few images: at ε = 1 nobody could read them
CLUSTERS = 10
SETTINGS: dict[str, Any] = {"epochs": 30, "chains": 100}  # enough for parts of 150 images, and fast

_KEPT_BACK = 6  # every sixth image
_SHOWN = 8  # in a row
_LEVELS = 17

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


def show_digits(folder: Path, schema: Schema, *, say: Callable[[str], None]) -> None:
    """Fit a mixture to `digits.npz`, which it writes first, and leaves release, samples and a picture in `folder`."""
    (images, digits), (unseen, answers) = load()
    np.savez_compressed(folder / "digits.npz", image=images, digit=digits)
    started = time.perf_counter()
    synthesizer = Synthesizer(model="rbm", clusters=CLUSTERS, epsilon=EPSILON, seed=0, settings=SETTINGS)
    synthesizer.fit(folder / "digits.npz", schema, out=folder / "digits.sundog", overwrite=True)
    release = synthesizer.release_
    say(f"   {folder / 'digits.sundog'} written in {time.perf_counter() - started:.1f} s")

    release.write(folder / "synthetic-digits.npz", len(images), seed=7)
    with np.load(folder / "synthetic-digits.npz") as drawn:
        learned = accuracy(drawn["image"], drawn["digit"], unseen, answers)
    best = accuracy(images, digits, unseen, answers)
    say(f"   a classifier that saw synthetic digits only reads {learned:.0%} of {len(unseen)} real ones kept back;")
    say(f"   one that saw the private digits reads {best:.0%}, and guessing would be 10%")
    picture = folder / "digits.png"
    draw_images(_rows(release, images, digits), picture, f"Ten clusters, ε = {EPSILON:g}")
    say(f"   a picture, a row for each cluster: {picture}")


def load() -> tuple[tuple[Images, Labels], tuple[Images, Labels]]:
    """Images and labels that are learned, and those that are kept back.

    >>> (images, digits), (unseen, _) = load()
    >>> images.shape, digits.shape, unseen.shape
    ((1497, 8, 8), (1497,), (300, 8, 8))
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, digits = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    back = np.arange(len(images)) % _KEPT_BACK == 0
    return (images[~back], digits[~back]), (images[back], digits[back])


def accuracy(images: Images, digits: Labels, unseen: Images, answers: Labels) -> float:
    """Return how much of the unseen is read by a forest that learned from these, all of it in black and white."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(200, random_state=0).fit(_black(images), digits)
    return float(forest.score(_black(unseen), answers))


def _black(images: Images) -> npt.NDArray[np.bool_]:
    """Return what the schema keeps of an image, a row each."""
    return images.reshape(len(images), -1) * 2 >= _LEVELS


def _rows(release: Release, images: Images, digits: Labels) -> list[tuple[Any, Any]]:
    """For each cluster what it draws, and real images of the digit that it draws most, in the order of digits."""
    rows = []
    for cluster in range(CLUSTERS):
        drawn = release.sample(_SHOWN, seed=7, where={"cluster": cluster}, as_="arrays")
        digit, _ = Counter(np.asarray(drawn["digit"]).astype(int).tolist()).most_common(1)[0]
        real = images[digits == digit][:_SHOWN]
        rows.append((digit, drawn["image"], _black(real).reshape(real.shape)))
    return [(drawn, real) for _, drawn, real in sorted(rows, key=lambda row: row[0])]
