"""A small schema with records, and the charges of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from sundog.data.schema import Schema
from sundog.release.release import Release

COLUMNS: dict[str, dict[str, Any]] = {
    "n": {"type": "integer", "min": 0, "max": 9},
    "b": {"type": "boolean"},
}
LEARNED: dict[str, dict[str, Any]] = {"n": {"type": "integer", "learn": True}, "b": {"type": "boolean"}}


def make_schema(columns: dict[str, dict[str, Any]] | None = None, **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": columns or COLUMNS})


def make_data(n: int) -> dict[str, Any]:
    return {"n": np.arange(n) % 10, "b": np.arange(n) % 2 == 0}


def list_purposes(release: Release) -> list[str]:
    return [charge.purpose for charge in release.certificate.charges]


MARGINALS = ["marginal of n", "marginal of b"]
