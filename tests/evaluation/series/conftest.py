"""Fixtures for time series."""

from __future__ import annotations

import pytest

from sundog.evaluation.series import recurrent_scores as series_models


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are not about the networks."""
    monkeypatch.setattr(series_models, "STEPS", 2)
