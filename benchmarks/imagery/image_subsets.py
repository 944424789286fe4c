"""Faces and photographs, of which a part is the training set of a target."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import DATA

import sundog
from sundog.data.records import Records

LFW, CIFAR = "LFW", "CIFAR-10"


@dataclass(frozen=True)
class Images:
    """Images of which some are members.

    Args:
        pixels: (N, height, width) or (N, height, width, channels), 8 bits.
        members: which are the training set.
    """

    pixels: NDArray[np.uint8]
    members: NDArray[np.bool_]

    @property
    def schema(self) -> sundog.Schema:
        """A schema of such images."""
        column = {"type": "image", "shape": list(self.pixels.shape[1:])}
        return sundog.Schema.from_dict({"columns": {"image": column}})

    def to_records(self, pixels: NDArray[np.uint8]) -> Records:
        """Return pixels as records."""
        return Records(self.schema, {"image": pixels}, len(pixels))


def load_images(data: str, share: float, people: int, records: int | None) -> Images:
    """Return images with a random share of them as members, or those of the people with most images.

    Args:
        data: LFW or CIFAR-10.
        share: of members; ignored if there are people.
        people: how many people are members; 0 for a random share.
        records: the most images to use.
    """
    pixels, owners = _read(data)
    order = np.random.default_rng(0).permutation(len(pixels))  # so that members are not scored in the order of a file
    if people:
        counts = np.bincount(owners)
        chosen = np.argsort(-counts, kind="stable")[:people]
        order = order[: records or len(order)]
        return Images(pixels[order], np.isin(owners[order], chosen))
    order = order[: records or len(order)]
    members = np.random.default_rng(1).permutation(len(order)) < round(share * len(order))
    return Images(pixels[order], members)


def is_at_hand() -> bool:
    """Return whether there are the files."""
    return (DATA / "lfw_all_gray32.npz").exists() and (DATA / "cifar10_10k.npz").exists()


@functools.cache
def _read(data: str) -> tuple[NDArray[Any], NDArray[Any]]:
    if data == LFW:
        kept = np.load(DATA / "lfw_all_gray32.npz")
        return kept["x"], kept["person"]
    kept = np.load(DATA / "cifar10_10k.npz")
    pixels = np.concatenate([kept["x_train"], kept["x_test"]])
    return pixels, np.zeros(len(pixels), np.int64)
