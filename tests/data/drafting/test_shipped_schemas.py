"""The reviewed schemas of the demo and the examples."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema

EXAMPLES = Path(__file__).parents[3] / "examples"


# --- the shipped schemas


def find_demo_file(name: str) -> Path:
    return Path(str(resources.files("sundog") / "demo" / name))


def test_the_demo_has_the_example_schema() -> None:
    assert find_demo_file("adult.schema.yaml").read_bytes() == (EXAMPLES / "adult.schema.yaml").read_bytes()


@pytest.mark.parametrize(
    ("name", "count", "ages"), [("adult.csv.gz", 10_000, [39, 50, 38]), ("adult_holdout.csv.gz", 5_000, [25, 38, 28])]
)
def test_the_demo_data_fits_its_schema(name: str, count: int, ages: list[int]) -> None:
    schema = Schema.load(find_demo_file("adult.schema.yaml"))
    raw = read(find_demo_file(name), schema)
    assert (raw.count, raw.ignored) == (count, ())
    assert (encode(raw, schema).codes["age"][:3] + 17).tolist() == ages
    assert find_demo_file(name).read_bytes()[4:8] == bytes(4)  # no time stamp: built again, it is the same file


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.schema.yaml")), ids=lambda path: path.name)
def test_every_example_is_a_reviewed_schema(path: Path) -> None:
    schema = Schema.load(path)
    assert schema.reviewed
    assert schema.complete
    assert re.search("CC BY|MIT licence|free use|free for|with permission|public domain", path.read_text())


def test_the_examples_take_data_of_their_kind() -> None:
    rng = np.random.default_rng(0)
    mnist = Schema.load(EXAMPLES / "mnist.schema.yaml")
    images = rng.integers(0, 256, (5, 28, 28), np.uint8)
    assert encode(read(images, mnist, labels=[0, 9, 3, 3, 1]), mnist).codes["label"].tolist() == [0, 9, 3, 3, 1]
    meters = Schema.load(EXAMPLES / "smartmeter.schema.yaml")
    days = {"x": rng.normal(0, 6, (20, 96)), "house": np.repeat([1, 2], 10), "weekday": np.arange(20) % 7}
    assert len(encode(read(days, meters), meters)) == 14  # seven days of each house, values clamped
    pages = Schema.load(EXAMPLES / "msnbc.schema.yaml")
    assert encode(read([["news", "tech"], []], pages), pages).codes["page"].nnz == 2
    visits = {"page": np.array([1, 1, 2, 16], np.uint8), "indptr": np.array([0, 3, 4], np.int32)}  # as in its file
    assert encode(read(visits, pages), pages).codes["page"].nnz == 3
    for name in ("retail", "kosarak"):
        baskets = Schema.load(EXAMPLES / f"{name}.schema.yaml")
        rare = sparse.csr_array(([1, 1], ([0, 1], [99, 100])), shape=(2, 16_000))
        assert encode(read(rare, baskets), baskets).codes["items"].nnz == 1
    areas = Schema.load(EXAMPLES / "msweb.schema.yaml")
    assert len(encode(read(sparse.random_array((3, 286), density=0.1, format="csr", rng=rng), areas), areas)) == 3
