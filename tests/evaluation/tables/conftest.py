"""Two tables and the section that compares them."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.evaluation.tables.two_tables import (
    compare,
    draw_people,
    encode_frame,
)

from sundog.evaluation.section import Section
from sundog.evaluation.tables.fidelity import evaluate_fidelity


@pytest.fixture(scope="module")
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    return draw_people(600, 0), draw_people(500, 1, slope=0.7)


@pytest.fixture(scope="module")
def section(frames: tuple[pd.DataFrame, pd.DataFrame]) -> Section:
    return evaluate_fidelity(compare(encode_frame(frames[0]), encode_frame(frames[1])))
