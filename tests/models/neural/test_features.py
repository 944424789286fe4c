"""Features against oracles that go one column, one record and one number at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse, stats
from tests.contracts.material import KINDS, constant_records, random_records, schema_of, to_lists
from torch import Tensor
from torch.nn import functional

from sundog.data.bins import make_bins
from sundog.data.code_set import CodeSet
from sundog.data.columns import ScalarColumn, SetColumn
from sundog.data.records import Records
from sundog.models.neural.features import Features, join_codes

every_kind = pytest.mark.parametrize("kind", KINDS)
CERTAIN = 60.0  # a logit


def dense(records: Records, index: Any = None) -> Tensor:
    features = Features(records.schema)
    places = np.arange(len(records)) if index is None else np.asarray(index, np.int64)
    return features.to_dense(features.to_examples(records).take(places))


def oracle_vector(features: Features, records: Records, row: int) -> list[float]:
    """Cells, items, intensities (those that may be missing first), gaps."""
    cells: list[float] = []
    items: list[float] = []
    levels: list[float] = []
    gapped: list[float] = []
    gaps: list[float] = []
    for name, column in records.schema.columns.items():
        codes = records.codes[name]
        if isinstance(column, ScalarColumn):
            cell = int(make_bins(column).to_bins(codes[row : row + 1])[0])
            cells += [float(number == cell) for number in range(make_bins(column).count)]
        elif isinstance(column, SetColumn):
            items += codes.toarray()[row].tolist()
        else:
            for code in codes[row].ravel().tolist():
                missing = column.nullable and code == column.null_code
                level = 0.0 if missing else code / (column.lattice_size - 1)
                (gapped if column.nullable else levels).append(level)
                if column.nullable:
                    gaps.append(float(missing))
    return [*cells, *items, *gapped, *levels, *gaps]


def oracle_loss(records: Records, logits: Tensor, row: int) -> float:
    """Column by column, with torch's own losses."""
    cells, items, gapped = 0, 0, 0
    columns = records.schema.columns
    for column in columns.values():
        size = math.prod(column.shape)
        cells += make_bins(column).count if isinstance(column, ScalarColumn) else 0
        items += size if isinstance(column, SetColumn) else 0
        gapped += size if column.shape and column.nullable else 0
    at_cell, at_item, at_gapped = 0, cells, cells + items
    at_level = at_gapped + gapped
    levels = sum(
        math.prod(c.shape) for c in columns.values() if c.shape and not c.nullable and not isinstance(c, SetColumn)
    )
    gaps = at_level + levels
    total = 0.0
    for name, column in columns.items():
        codes = records.codes[name]
        if isinstance(column, ScalarColumn):
            bins = make_bins(column)
            cell = torch.tensor([int(bins.to_bins(codes[row : row + 1])[0])])
            total += float(functional.cross_entropy(logits[None, at_cell : at_cell + bins.count], cell))
            at_cell += bins.count
            continue
        size = math.prod(column.shape)
        flat = codes.toarray()[row] if isinstance(column, SetColumn) else codes[row].ravel()
        target = torch.tensor(flat.astype(np.float64) / (column.lattice_size - 1), dtype=torch.float32)
        weight = torch.ones(size)
        if isinstance(column, SetColumn):
            start, at_item = at_item, at_item + size
        elif column.nullable:
            start, at_gapped = at_gapped, at_gapped + size
            missing = torch.tensor((flat == column.null_code).astype(np.float32))
            own = logits[gaps : gaps + size]
            gaps += size
            total += float(functional.binary_cross_entropy_with_logits(own, missing, reduction="sum"))
            weight, target = 1 - missing, target * (1 - missing)
        else:
            start, at_level = at_level, at_level + size
        own = logits[start : start + size]
        total += float(functional.binary_cross_entropy_with_logits(own, target, weight, reduction="sum"))
    return total


# --- records to vectors ---


@every_kind
def test_a_vector_is_what_a_loop_over_columns_gives(kind: str) -> None:
    records = random_records(schema_of(KINDS[kind]), 30)
    features = Features(records.schema)
    found = dense(records)
    assert found.shape == (30, features.width)
    assert found.dtype == torch.float32
    for row in range(30):
        assert found[row].tolist() == pytest.approx(oracle_vector(features, records, row))


@every_kind
def test_only_the_rows_that_are_asked_for_are_taken(kind: str) -> None:
    records = random_records(schema_of(KINDS[kind]), 20)
    index = [3, 7, 19]
    assert torch.equal(dense(records, index), dense(records)[index])
    assert dense(records, []).shape == (0, Features(records.schema).width)


def test_a_batch_is_small_however_wide_the_records_are() -> None:
    schema = schema_of({"basket": {"type": "set", "universe": 50_000, "max_size": 3}})
    sets = sparse.csr_array(([1, 1], ([0, 1], [7, 49_999])), shape=(2, 50_000), dtype=np.uint8)
    batch = Features(schema).to_examples(Records(schema, {"basket": sets}, 2)).take(np.array([0, 1]))
    assert {key: tensor.shape for key, tensor in batch.items()} == {"places": (2, 3)}
    assert Features(schema).to_dense(batch).nonzero().tolist() == [[0, 7], [1, 49_999]]


def test_batches_of_stacked_models_have_one_more_dimension() -> None:
    records = random_records(schema_of(KINDS["mix"]), 12)
    features = Features(records.schema)
    batch = features.to_examples(records).take(np.arange(12))
    stacked = {key: tensor.view(3, 4, -1) for key, tensor in batch.items()}
    x, logits = features.to_dense(batch), torch.randn(12, features.width)
    assert torch.equal(features.to_dense(stacked), x.view(3, 4, -1))
    found = features.loss(logits.view(3, 4, -1), x.view(3, 4, -1))
    torch.testing.assert_close(found.flatten(), features.loss(logits, x))


# --- likelihoods ---


@every_kind
def test_the_loss_is_the_sum_of_the_losses_of_all_columns(kind: str) -> None:
    records = random_records(schema_of(KINDS[kind]), 10, seed=1)
    features = Features(records.schema)
    logits = 3 * torch.randn(10, features.width, generator=torch.Generator().manual_seed(2))
    found = features.loss(logits, dense(records))
    assert found.shape == (10,)
    for row in range(10):
        assert float(found[row]) == pytest.approx(oracle_loss(records, logits[row], row), rel=1e-4, abs=1e-4)


def test_a_column_with_one_value_has_no_loss() -> None:
    records = random_records(schema_of({"only": {"type": "integer", "min": 3, "max": 3}}), 5)
    assert Features(records.schema).loss(torch.randn(5, 1), dense(records)).tolist() == pytest.approx([0.0] * 5)


def test_conditions_have_the_probability_of_their_cells() -> None:
    columns: dict[str, dict[str, Any]] = {
        "colour": {"type": "categorical", "values": ["r", "g"], "nullable": True},
        "n": {"type": "integer", "min": 0, "max": 99, "bins": 5},
    }
    features = Features(schema_of(columns))
    logits = torch.randn(4, 8)
    found = features.log_likelihood(logits, {"colour": 2, "n": 45})
    expected = logits[:, :3].log_softmax(dim=1)[:, 2] + logits[:, 3:].log_softmax(dim=1)[:, 2] - math.log(20)
    torch.testing.assert_close(found, expected)  # codes are uniform in a cell
    assert features.log_likelihood(logits, {}).tolist() == [0.0] * 4


# --- logits to vectors ---


@every_kind
def test_vectors_that_are_certain_are_drawn(kind: str) -> None:
    records = random_records(schema_of(KINDS[kind]), 30, seed=4)
    features = Features(records.schema)
    x = dense(records).round()
    assert torch.equal(features.draw((2 * x - 1) * CERTAIN), x)
    stacked = ((2 * x - 1) * CERTAIN).view(3, 10, -1)
    assert torch.equal(features.draw(stacked), x.view(3, 10, -1))


def test_vectors_are_drawn_with_their_probabilities() -> None:
    columns: dict[str, dict[str, Any]] = {
        "n": {"type": "integer", "min": 0, "max": 3},
        "old": {"type": "boolean"},
        "basket": {"type": "set", "universe": 3, "max_size": 1},
    }
    features = Features(schema_of(columns))
    p = torch.tensor([0.5, 0.001, 0.199, 0.3, 0.9, 0.1, 0.2, 0.99, 0.5])
    logits = torch.cat([p[:6].log() + 7, p[6:].logit()])  # cells are only compared with each other
    count = 40_000
    drawn = features.draw(logits.expand(count, -1), torch.Generator().manual_seed(0))
    assert ((drawn == 0) | (drawn == 1)).all()
    assert (drawn[:, :4].sum(dim=1) == 1).all()
    assert (drawn[:, 4:6].sum(dim=1) == 1).all()
    found = drawn.sum(dim=0).numpy()
    assert stats.chisquare(found[:4], count * p[:4].double().numpy()).pvalue > 1e-6
    assert (abs(found - count * p.numpy()) < 6 * np.sqrt(count * (p * (1 - p)).numpy())).all()
    apart = np.corrcoef(drawn[:, [0, 4, 6, 8]].numpy().T) - np.eye(4)
    assert np.abs(apart).max() < 6 / math.sqrt(count)  # each column by itself
    again = features.draw(logits.expand(count, -1), torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)


def test_ranges_have_the_share_of_each_cell_that_they_cover() -> None:
    features = Features(schema_of({"n": {"type": "integer", "min": 0, "max": 99, "bins": 5}}))
    logits = torch.randn(4, 5)
    p = logits.softmax(dim=1)
    found = features.log_likelihood(logits, {"n": CodeSet.between(30, 64)}).exp()
    torch.testing.assert_close(found, p[:, 1] / 2 + p[:, 2] + p[:, 3] / 4)


def test_vectors_and_records_are_drawn_as_conditions_allow() -> None:
    """In proportion to what is left of each cell, and anywhere in that; other columns as without conditions."""
    columns: dict[str, dict[str, Any]] = {
        "n": {"type": "integer", "min": 0, "max": 99, "bins": 5},
        "old": {"type": "boolean"},
    }
    features, count = Features(schema_of(columns)), 40_000
    p = torch.tensor([0.5, 0.1, 0.1, 0.2, 0.1, 0.3, 0.7])
    where = {"n": CodeSet.of([*range(30, 65), 99])}
    expected = count * np.array([0, 0.05, 0.1, 0.05, 0.005]) / 0.205
    logits = p.log().expand(count, -1)
    cells = features.draw(features.restrict(logits, where), torch.Generator().manual_seed(0)).sum(dim=0)[:5].numpy()
    assert cells[0] == 0
    assert stats.chisquare(cells[1:], expected[1:]).pvalue > 1e-6
    drawn = features.sample(logits, np.random.default_rng(0), where)
    assert set(drawn["n"].tolist()) == {*range(30, 65), 99}
    found = np.bincount(drawn["n"], minlength=100)
    assert np.abs(found.reshape(5, 20).sum(axis=1) - expected).max() < 3  # evenly
    assert stats.chisquare(found[40:60]).pvalue > 1e-6
    assert abs(int(drawn["old"].sum()) - 0.7 * count) < 2


def test_intensities_and_gaps_have_their_places() -> None:
    records = constant_records(schema_of(KINDS["mix"]), 1, last=True)
    features = Features(records.schema)
    x = dense(records)
    assert x[:, features.gaps].tolist() == [[1.0] * 3]  # a series of three missing values
    assert x[:, features.levels].tolist() == [[0.0] * 3 + [1.0] * 18]  # and two pictures, all white


# --- and back ---


@every_kind
def test_logits_that_are_certain_give_the_record_back(kind: str) -> None:
    records = random_records(schema_of(KINDS[kind]), 40, seed=3)
    features = Features(records.schema)
    x = dense(records)
    logits = torch.logit(x.double(), eps=1e-12).float().clamp(-CERTAIN, CERTAIN) * 2
    exact = (x > 0) & (x < 1)  # intensities in between keep their own logit
    logits = torch.where(exact, logits / 2, logits)
    drawn = features.sample(logits, np.random.default_rng(0))
    again = dense(Records(records.schema, drawn, 40))
    for name, column in records.schema.columns.items():
        assert isinstance(column, SetColumn) or drawn[name].dtype == column.dtype
        assert drawn[name].shape == (40, *column.shape)
        if not isinstance(column, ScalarColumn) or make_bins(column).count == column.size:
            assert to_lists(drawn[name]) == to_lists(records.codes[name]), name
    assert torch.allclose(again, x, atol=1e-6)  # the same cells, whatever is drawn inside of them


def test_cells_and_items_are_drawn_with_their_probabilities() -> None:
    columns: dict[str, dict[str, Any]] = {
        "n": {"type": "integer", "min": 0, "max": 3},
        "basket": {"type": "set", "universe": 5, "max_size": 5},
    }
    features = Features(schema_of(columns))
    p, q = np.array([0.5, 0.0, 0.2, 0.3]), np.array([0.1, 0.9, 0.5, 0.0, 1.0])
    with np.errstate(divide="ignore"):
        logits = torch.tensor(np.concatenate([np.log(p), np.log(q) - np.log1p(-q)]), dtype=torch.float32)
    count = 20_000
    drawn = features.sample(logits.clamp(-80, 80).expand(count, -1), np.random.default_rng(1))
    found = np.bincount(drawn["n"], minlength=4)
    assert found[1] == 0
    assert stats.chisquare(found[p > 0], count * p[p > 0]).pvalue > 1e-6
    means = np.asarray(drawn["basket"].mean(axis=0)).ravel()
    assert np.abs(means - q).max() < 6 * 0.5 / math.sqrt(count)


def test_a_set_that_is_too_large_loses_items_at_random() -> None:
    schema = schema_of({"basket": {"type": "set", "universe": 6, "max_size": 2}})
    logits = torch.tensor([CERTAIN, CERTAIN, CERTAIN, 0.0, -CERTAIN, CERTAIN]).expand(6000, -1)
    sets = Features(schema).sample(logits, np.random.default_rng(2))["basket"].toarray()
    assert set(sets.sum(axis=1)) == {2}
    counts = sets.sum(axis=0)
    assert counts[4] == 0
    certain = counts[[0, 1, 2, 5]]
    assert certain.max() - certain.min() < 400  # about 2600 each, give or take 40
    assert 1000 < counts[3] < certain.min()


@every_kind
def test_the_first_and_the_last_code_survive(kind: str) -> None:
    for last in (False, True):
        records = constant_records(schema_of(KINDS[kind]), 3, last=last)
        x = dense(records)
        drawn = Features(records.schema).sample((2 * x - 1) * 2 * CERTAIN, np.random.default_rng(0))
        assert torch.equal(dense(Records(records.schema, drawn, 3)), x)


def test_parts_are_joined() -> None:
    records = random_records(schema_of(KINDS["mix"]), 9)
    parts = [records.take(slice(0, 4)).codes, records.take(slice(4, 4)).codes, records.take(slice(4, 9)).codes]
    whole = join_codes(parts)
    assert {name: to_lists(codes) for name, codes in whole.items()} == {
        n: to_lists(c) for n, c in records.codes.items()
    }
    assert join_codes(parts[:1]) is parts[0]


def test_means_are_those_of_vectors_and_what_is_missing_is_left_out_of_what_is_there() -> None:
    schema = schema_of(
        {
            "old": {"type": "boolean"},
            "meter": {"type": "series", "length": 2, "min": 0, "max": 10, "resolution": 1, "nullable": True},
            "clock": {"type": "series", "length": 1, "min": 0, "max": 10, "resolution": 1},
        }
    )
    column = schema.columns["meter"]
    meter = np.array([[8, 4], [column.null_code, 4], [column.null_code, column.null_code], [8, column.null_code]])
    codes = {"old": np.array([1, 0, 0, 0]), "meter": meter, "clock": np.array([[5]] * 4)}
    records = Records(schema, {name: codes[name].astype(schema.columns[name].dtype) for name in codes}, 4)
    features, means = Features(schema), dense(records).mean(dim=0)
    present = features.condition_on_presence(means)
    torch.testing.assert_close(means, torch.tensor([0.75, 0.25, 0.4, 0.2, 0.5, 0.5, 0.5]))
    torch.testing.assert_close(present, torch.tensor([0.75, 0.25, 0.8, 0.4, 0.5, 0.5, 0.5]))
    torch.testing.assert_close(features.means(features.logits(present, least=0.0)), means)
    nothing = torch.tensor([1.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    assert bool(((features.condition_on_presence(nothing) >= 0) & (features.condition_on_presence(nothing) <= 1)).all())
