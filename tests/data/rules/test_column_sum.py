"""Sums and differences: what is computed, on which lattice, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from tests.data.rules.material import day, every_record, only, rules_of, schema_of, values_of, whole

from sundog.data.rules import Derivation
from sundog.errors import SchemaError


def money(low: float = 0, high: float = 10, resolution: float = 0.1, **rest: Any) -> dict[str, Any]:
    return {"type": "continuous", "min": low, "max": high, "resolution": resolution, **rest}


def derived(columns: dict[str, Any], text: str) -> tuple[list[tuple[Any, ...]], list[bool]]:
    """All records of the sources with the sum that follows, and which have one."""
    schema = schema_of(columns, text)
    rules = schema.bind_rules()
    codes, known = rules.derive(every_record(schema.modelled))
    possible = np.ones(len(next(iter(codes.values()))), bool) if known is None else known
    assert only(rules).holds(codes)[possible].all()
    return values_of(schema, codes), possible.tolist()


def test_a_sum_of_whole_numbers_is_exact_and_bounds_are_kept() -> None:
    rows, known = derived({"a": whole(-3, 4), "b": whole(0, 5), "c": whole(0, 6)}, "c = a + b")
    assert known == [0 <= a + b <= 6 for a, b, _ in rows]
    assert all(c == a + b for (a, b, c), fits in zip(rows, known, strict=True) if fits)


def test_a_column_that_clamps_is_clamped() -> None:
    columns = {"a": whole(), "b": whole(), "c": whole(0, 5, out_of_bounds="clamp")}
    rows, known = derived(columns, "c = a - b")
    assert all(known)
    assert all(c == min(max(a - b, 0), 5) for a, b, c in rows)


def test_decimals_add_up_as_they_are_written() -> None:
    """0.1 + 0.2 is 0.3 in the file, not 0.30000000000000004."""
    rows, known = derived({"a": money(0, 1), "b": money(0, 1), "c": money(0, 2)}, "c = a + b")
    assert all(known)
    assert all(Decimal(str(a)) + Decimal(str(b)) == Decimal(str(c)) for a, b, c in rows)


def test_a_coarser_column_has_the_nearest_value() -> None:
    rows, _ = derived({"a": money(0, 1, 0.01), "b": money(0, 1, 0.25), "c": money(0, 2, 0.5)}, "c = a + b")
    assert all(abs(a + b - c) <= 0.25 + 1e-9 and (c / 0.5) % 1 == 0 for a, b, c in rows)


def test_a_whole_number_is_the_nearest_to_a_sum_of_decimals() -> None:
    rows, _ = derived({"a": money(0, 3), "b": money(0, 3), "c": whole(0, 6)}, "c = a + b")
    assert all(abs(a + b - c) <= 0.5 + 1e-9 for a, b, c in rows)


def test_a_missing_term_makes_the_sum_missing() -> None:
    columns = {"a": whole(nullable=True), "b": whole(0, 3), "c": whole(-9, 9, nullable=True)}
    rows, known = derived(columns, "c = a - b")
    assert all(known)
    assert all(c is None if a is None else c == a - b for a, b, c in rows)


def test_special_values_are_numbers_like_others() -> None:
    rows, _ = derived({"a": whole(-1, 5, special=[-1]), "b": whole(0, 2), "c": whole(-1, 7)}, "c = a + b")
    assert all(c == a + b for a, b, c in rows)


@pytest.mark.parametrize("text", ["stay = left - came", "left = came + stay"])
def test_a_difference_of_days_is_a_number(text: str) -> None:
    columns = {"came": day(), "left": day(), "stay": whole(0, 20)}
    rows, known = derived(columns, text)
    assert any(known)
    assert not all(known)
    assert all((left - came).days == stay for (came, left, stay), fits in zip(rows, known, strict=True) if fits)


def test_a_copy_is_a_sum_of_one() -> None:
    rows, known = derived({"a": whole(), "b": whole()}, "b = a")
    assert all(known)
    assert all(a == b for a, b in rows)


def test_a_column_may_be_subtracted_first_and_counted_twice() -> None:
    rows, _ = derived({"a": whole(0, 3), "b": whole(-6, 0)}, "b = -a - a")
    assert all(b == -2 * a for a, b in rows)


def test_real_values_may_be_rounded_each() -> None:
    """0.44 + 0.44 = 0.88 is read as 0.4 + 0.4 and 0.9: no rule is broken."""
    schema = schema_of({"a": money(0, 1), "b": money(0, 1), "c": money(0, 2)}, "c = a + b")
    bound = only(schema.bind_rules())
    read = {
        name: schema.columns[name].encode([value], where="")
        for name, value in zip("abc", (0.44, 0.44, 0.88), strict=True)
    }
    assert bound.holds(read).all()
    read["c"] = schema.columns["c"].encode([1.1], where="")
    assert not bound.holds(read).any()


def test_what_is_too_large_for_a_time_is_no_time() -> None:
    columns = {"came": day(), "left": day(), "stay": whole(0, 2**61)}
    (derivation,) = rules_of(columns, "left = came + stay").derivations
    _, known = derivation.derive({"came": np.array([0, 0]), "stay": np.array([2**61, 3])})
    assert known.tolist() == [False, True]


def test_a_sum_that_always_fits_is_never_rejected() -> None:
    fits = rules_of({"a": whole(), "b": whole(), "c": whole(0, 18)}, "c = a + b")
    assert not fits.rejects
    assert rules_of({"a": whole(), "b": whole(), "c": whole(0, 17)}, "c = a + b").rejects
    (each,) = fits.derivations
    assert isinstance(each, Derivation)
    assert (each.derived, each.sources) == ("c", ("a", "b"))


@pytest.mark.parametrize(
    ("columns", "text", "problem"),
    [
        (
            {"a": whole(), "c": whole(50, 60)},
            "c = a",
            "no sum fits: it lies between 0 and 9, and 'c' between 50 and 60",
        ),
        ({"a": whole(nullable=True), "c": whole()}, "c = a", "'a' may be missing and 'c' not"),
        ({"a": whole(), "c": whole()}, "c = c + a", "computes column 'c' from itself"),
        ({"a": day(), "c": whole()}, "c = a", "does not give a number"),
        ({"a": day(), "b": day(), "c": day()}, "c = a - b", "does not give a time"),
        ({"a": day(), "b": day(resolution="hour"), "c": whole()}, "c = a - b", "adds times in day and hours"),
        ({"a": day(), "b": money(), "c": day()}, "c = a + b", "adds 'b' to a time; declare it as whole days"),
        ({"a": day(timezone="UTC"), "b": day(timezone="UTC"), "c": whole()}, "c = a - b", "has a timezone"),
        ({"a": whole(0, 2**62), "b": whole(0, 2**62), "c": whole()}, "c = a + b", "too large to be added exactly"),
        ({"a": whole(), "c": {"type": "categorical", "values": [0, 1]}}, "c = a", "column 'c' is categorical"),
        (
            {"a": whole(), "c": whole(bins="quantiles")},
            "c = a",
            "column 'c' is derived, so nothing is measured of it; remove its bins",
        ),
        ({"a": whole(), "c": whole(public=True)}, "c = a", "column 'c' is public and follows from private ones"),
    ],
)
def test_what_is_no_sum_is_refused(columns: dict[str, Any], text: str, problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(columns, text)
    assert problem in str(error.value)
