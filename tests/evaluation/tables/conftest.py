"""Two tables and the section that compares them."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.evaluation.tables.two_tables import (
    compare,
    people,
    records,
)

from sundog.evaluation.section import Section
from sundog.evaluation.tables.fidelity import evaluate_fidelity


@pytest.fixture(scope="module")
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    return people(600, 0), people(500, 1, slope=0.7)


@pytest.fixture(scope="module")
def section(frames: tuple[pd.DataFrame, pd.DataFrame]) -> Section:
    return evaluate_fidelity(compare(records(frames[0]), records(frames[1])))
