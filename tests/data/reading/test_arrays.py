"""Sources of images, series and sets."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.data.reading.declared_sources import (
    IMAGES,
    NUMBERED,
    PIXELS,
    SETS,
    catch_message,
    declare_columns,
    read_codes,
    to_idx,
)

# --- images, series ---


def test_images_from_every_source(tmp_path: Path) -> None:
    labels = np.array([0, 2, 1, 1])
    expected = {"image": PIXELS.tolist(), "label": labels.tolist()}
    (tmp_path / "x-idx3-ubyte.gz").write_bytes(gzip.compress(to_idx(PIXELS)))
    (tmp_path / "y.idx").write_bytes(to_idx(labels))
    np.savez(tmp_path / "named.npz", image=PIXELS, label=labels)
    np.savez(tmp_path / "x.npz", other=np.zeros((4, 6)), x=PIXELS, label=labels)
    np.savez_compressed(tmp_path / "flat.npz", pixels=PIXELS.reshape(4, 6), label=labels)
    np.savez(tmp_path / "y.npz", labels=labels)
    pd.DataFrame({"label": labels}).to_csv(tmp_path / "y.csv", index=False)
    for name in ("named.npz", "x.npz", "flat.npz"):
        assert read_codes(tmp_path / name, IMAGES) == expected, name
    for target in (
        tmp_path / "y.idx",
        tmp_path / "y.npz",
        tmp_path / "y.csv",
        labels,
        labels.tolist(),
        pd.Series(labels),
    ):
        assert read_codes(tmp_path / "x-idx3-ubyte.gz", IMAGES, labels=target) == expected
        assert read_codes(PIXELS, IMAGES, labels=target) == expected
    assert read_codes({"image": PIXELS.tolist(), "label": labels}, IMAGES) == expected


def test_idx_of_wider_types(tmp_path: Path) -> None:
    schema = declare_columns(n={"type": "integer", "min": -500, "max": 500})
    (tmp_path / "n.idx").write_bytes(bytes([0, 0, 0x0B, 1, 0, 0, 0, 2]) + np.array([-300, 300], ">i2").tobytes())
    assert read_codes(tmp_path / "n.idx", schema) == {"n": [200, 800]}


def test_series_as_columns_lists_and_arrays(tmp_path: Path) -> None:
    schema = declare_columns(
        load={"type": "series", "length": 2, "min": 0, "max": 9, "resolution": 1, "nullable": True}
    )
    values = np.array([[1.0, 2.0], [3.0, np.nan]])
    expected = {"load": [[1, 2], [3, 10]]}
    pd.DataFrame(values, columns=["load_0", "load_1"]).to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.table({"load": values.tolist()}), tmp_path / "t.parquet")
    for source in (
        tmp_path / "t.csv",
        tmp_path / "t.parquet",
        values,
        {"load": values},
        pd.DataFrame({"load": list(values)}),
    ):
        assert read_codes(source, schema) == expected


# --- sets ---


def test_sets_from_every_source(tmp_path: Path) -> None:
    matrix = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]], np.uint8)
    csr = sparse.csr_array(matrix)
    lists = [["milk", "bread"], [], ["tea", "milk"]]
    (tmp_path / "t.txt").write_text("milk bread\n\ntea  milk\n")
    (tmp_path / "t.dat.gz").write_bytes(gzip.compress(b"milk bread\r\n\r\ntea milk"))
    pd.DataFrame({"basket": ["milk bread", "", "tea milk"], "n": 1}).to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.table({"basket": lists}), tmp_path / "t.parquet")
    parts = {"indices": csr.indices.astype(np.uint16), "indptr": csr.indptr, "shape": np.array(csr.shape)}
    np.savez(tmp_path / "t.npz", item_names=np.array(["bread", "milk", "tea"]), **parts)
    files = [tmp_path / name for name in ("t.txt", "t.dat.gz", "t.csv", "t.parquet", "t.npz")]
    for source in (*files, matrix, csr, sparse.coo_matrix(matrix), lists, [set(x) for x in lists], {"basket": lists}):
        assert read_codes(source, SETS) == {"basket": matrix.tolist()}, source


def test_items_with_spaces_stand_apart_by_bars(tmp_path: Path) -> None:
    schema = declare_columns(basket={"type": "set", "universe": ["whole milk", "tea"], "max_size": 2})
    (tmp_path / "t.csv").write_text("basket\nwhole milk|tea\ntea\n\n")
    assert read_codes(tmp_path / "t.csv", schema) == {"basket": [[1, 1], [0, 1], [0, 0]]}


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"indices": [0, 7], "indptr": [0, 1, 2], "shape": [2, 8]}, "item 7"),
        ({"indices": [0, 9], "indptr": [0, 1, 2], "shape": [2, 4]}, "item 9"),
        ({"indices": [0, -1], "indptr": [0, 1, 2], "shape": [2, 4]}, "item -1"),
        ({"indices": [0, 1], "indptr": [0, 2, 1], "shape": [2, 4]}, "indptr"),
        ({"indices": [0, 1], "indptr": [0, 1, 9], "shape": [2, 4]}, "indptr"),
        ({"indices": [0, 1], "indptr": [0, 1, 2], "shape": [5, 4]}, "do not fit together"),
        ({"indices": [0.5, 1], "indptr": [0, 1, 2], "shape": [2, 4]}, "do not fit together"),
        ({"indices": [0, 1], "indptr": [0, 1, 2], "shape": [-1, 4]}, "do not fit together"),
    ],
)
def test_a_sparse_matrix_is_not_trusted(tmp_path: Path, parts: dict[str, Any], says: str) -> None:
    np.savez(tmp_path / "t.npz", **parts)
    message = catch_message(tmp_path / "t.npz", NUMBERED)
    assert says in message
    assert message.startswith("t.npz")


def test_items_in_turn_make_sets(tmp_path: Path) -> None:
    visits: dict[str, Any] = {"basket": np.array([2, 1, 1, 2, 0], np.uint8), "indptr": np.array([0, 4, 4, 5], np.int32)}
    np.savez(tmp_path / "t.npz", names=np.array(["bread", "milk", "tea"]), **visits)
    for source in (tmp_path / "t.npz", visits):
        assert read_codes(source, SETS) == {"basket": [[0, 1, 1], [0, 0, 0], [1, 0, 0]]}
    dropping = declare_columns(basket={"type": "set", "universe": 2, "max_size": 1, "undeclared": "drop"})
    assert read_codes(tmp_path / "t.npz", dropping) == {"basket": [[0, 1], [0, 0], [1, 0]]}
    whole = {"basket": np.eye(3, dtype=np.uint8), "indptr": np.arange(4)}  # a matrix is a matrix, whatever is beside it
    assert read_codes(whole, SETS) == {"basket": np.eye(3).tolist()}


def test_a_table_may_have_a_column_of_any_name(tmp_path: Path) -> None:
    """A table may have a column with the name of the record starts in an archive."""
    frame = pd.DataFrame({"basket": ["milk bread", "", "tea milk"], "indptr": [0, 1, 2]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    texts: dict[str, Any] = {"basket": frame["basket"].to_numpy(str), "indptr": frame["indptr"].to_numpy()}
    np.savez(tmp_path / "t.npz", **texts)
    both = declare_columns(
        **{"basket": SETS.to_dict()["columns"]["basket"], "indptr": {"type": "integer", "min": 0, "max": 9}}
    )
    baskets = [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    files = [tmp_path / f"t.{kind}" for kind in ("csv", "parquet", "npz")]
    for source in (*files, frame, pa.Table.from_pandas(frame), texts):
        assert read_codes(source, SETS) == {"basket": baskets}, source
        assert read_codes(source, both) == {"basket": baskets, "indptr": [0, 1, 2]}, source
    whole = {"basket": np.array([0, 1, 2]), "indptr": np.array([0, 2, 3])}
    assert read_codes(whole, SETS) == {"basket": [[1, 1, 0], [0, 0, 1]]}  # as many items as numbers of another kind
    assert "give it lists of items" in catch_message(whole, both)  # what is declared is a column


@pytest.mark.parametrize(
    ("items", "indptr", "says"),
    [
        ([0, 3], [0, 1, 2], "item 3"),
        ([0, 2**62], [0, 1, 2], f"item {2**62}"),
        ([0, -1], [0, 1, 2], "item -1"),
        ([0, 1], [0, 2, 1], "indptr"),
        ([0, 1], [1, 2], "indptr"),
        ([0, 1], [0, 1, 9], "indptr"),
        ([0, 1], [[0, 1, 2]], "do not fit together"),
        ([0, 1], np.empty(0, int), "do not fit together"),
        ([0.5, 1], [0, 1, 2], "do not fit together"),
        (["tea", "milk"], [0, 1, 2], "do not fit together"),
    ],
)
def test_items_in_turn_are_not_trusted(tmp_path: Path, items: Any, indptr: Any, says: str) -> None:
    np.savez(tmp_path / "t.npz", basket=np.array(items), indptr=np.array(indptr))
    message = catch_message(tmp_path / "t.npz", SETS)
    assert says in message
    assert message.startswith("t.npz")
