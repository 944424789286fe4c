"""What the tests of mixtures share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Run every test of a mixture on one thread."""
