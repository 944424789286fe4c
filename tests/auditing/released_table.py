"""Releases of small tables, as they should be and broken."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pandas as pd
from tests.auditing.copied_records import TABLE, make_table

from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.independent import Independent
from sundog.release.release import Release

CODES = Schema.from_dict({"columns": {"code": {"type": "integer", "min": 0, "max": 99_999, "bins": 100_000}}})


def read_table(rows: int, seed: int) -> Records:
    return encode(read(make_table(np.random.default_rng(seed), rows), TABLE), TABLE)


@functools.cache
def make_release(model: str = "independent") -> Release:
    """Return a release of a table."""
    table = make_table(np.random.default_rng(100), 800)
    return Synthesizer(model, epsilon=1.0, delta=1e-6, seed=0).fit(table, TABLE).release_


def make_codes(rows: int, seed: int) -> pd.DataFrame:
    return pd.DataFrame({"code": np.random.default_rng(seed).integers(0, 100_000, rows)})


def make_broken_release(members: pd.DataFrame) -> Release:
    """Return a release that claims ε = 1, but whose marginal was measured without noise."""
    fitted = Synthesizer("independent", epsilon=1.0, delta=1e-6, seed=0).fit(members, CODES).release_
    records = encode(read(members, CODES), CODES)
    exact = np.bincount(records.codes["code"], minlength=100_000) / len(records)
    return replace(fitted, model=Independent(fitted.schema, {"code": exact}, len(records)))
