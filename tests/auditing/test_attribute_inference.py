"""A column, or an item of a set, that is inferred from all that the attacker knows of a record, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sundog.auditing.attacks.attribute_inference import AttributeInference, choose_secret
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema

IMAGES = Schema.from_dict(
    {
        "columns": {
            "image": {"type": "image", "shape": [4, 4]},
            "label": {"type": "categorical", "values": ["dark", "light"]},
        }
    }
)
SETS = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 60, "max_size": 60}}})


def make_images(rows: int, seed: int) -> Records:
    """Return images that tell their label."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, rows)
    pixels = rng.integers(0, 100, (rows, 4, 4)) + 150 * label[:, None, None]
    return Records(IMAGES, {"image": pixels.astype(np.uint8), "label": label.astype(np.uint8)}, rows)


def make_sets(rows: int, seed: int, *, linked: bool = True) -> Records:
    """Return sets of rare items; the first is in half of them, together with the second if they are linked."""
    rng = np.random.default_rng(seed)
    held = rng.random((rows, 60)) < 0.1
    held[:, 0] = rng.random(rows) < 0.5
    if linked:
        held[:, 1] = held[:, 0]
    return encode(read(sparse.csr_array(held.astype(np.uint8)), SETS), SETS)


def score(candidates: Records, synthetic: Records) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rng = np.random.default_rng(0)
    return np.exp(AttributeInference().score(ThreatModel({Knowledge.SYNTHETIC: synthetic}), candidates, rng))


def test_a_label_is_inferred_from_its_image() -> None:
    assert AttributeInference().find_obstacle(ThreatModel(), IMAGES) is None
    assert score(make_images(100, 0), make_images(300, 1)).min() > 0.9


@pytest.mark.parametrize("linked", [True, False])
def test_an_item_is_inferred_from_others_but_not_from_itself(linked: bool) -> None:
    assert choose_secret(SETS) == "basket"
    found = score(make_sets(100, 0, linked=linked), make_sets(600, 1, linked=linked))
    assert (found.mean() > 0.9) == linked
    assert linked or found.mean() < 0.6


def test_a_release_that_teaches_nothing_suspects_nobody() -> None:
    candidates, synthetic = make_images(40, 0), make_images(100, 1)
    dark = Records(IMAGES, {**synthetic.codes, "label": np.zeros(100, np.uint8)}, 100)
    assert score(candidates, dark).tolist() == [1.0] * 40


def test_there_is_nothing_to_infer_from_series_alone() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "series", "length": 5, "min": 0, "max": 1}}})
    obstacle = AttributeInference().find_obstacle(ThreatModel(), schema)
    assert obstacle == "there is no column of 2 to 50 categories beside others, and no set"
