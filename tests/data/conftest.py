"""Records of people."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.data.learning import N


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    cities = np.array(["Berlin", "Hamburg", "München", "Köln"], dtype=object)
    frame = pd.DataFrame(
        {
            "city": cities[rng.choice(4, N, p=[0.5, 0.3, 0.15, 0.05])],
            "grade": rng.choice(["a", "b", "c"], N),
            "visits": rng.poisson(12, N) + 1,
            "weight": np.where(rng.random(N) < 0.1, np.nan, rng.normal(75, 12, N)),
            "seen": np.datetime64("2015-01-01") + rng.integers(0, 2000, N).astype("timedelta64[D]"),
            "income": np.minimum(rng.lognormal(10, 0.7, N).astype(int), 1_000_000),
            "score": rng.normal(-3, 1, N),
        }
    )
    frame.loc[0, "city"] = "a village of one"
    return frame
