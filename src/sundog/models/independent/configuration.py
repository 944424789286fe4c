"""The configuration of independent columns: it has no settings."""

from __future__ import annotations

from typing import ClassVar

from sundog.models.configuration import Configuration


class IndependentConfiguration(Configuration):
    """Noisy one-way marginals of every column."""

    name: ClassVar[str] = "independent"
    options: ClassVar[frozenset[str]] = frozenset({"clusters"})
    counts_records: ClassVar[bool] = False  # the histograms show it
