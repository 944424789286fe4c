"""A ledger, in memory and in a file."""

from pathlib import Path

import pytest
from tests.privacy.charges import DELTA

from sundog.privacy.ledger import Ledger


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "memory":
        return Ledger(epsilon=1.0, delta=DELTA)
    return Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=DELTA)
