"""The members that attacks recognise best: for the curator's eyes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.auditing.audit_inputs import Sample
from sundog.auditing.candidates import Scores
from sundog.data.columns import Form

WORST = 100


@dataclass(frozen=True)
class WorstRecord:
    """A member, or the first record of one.

    Args:
        row: its number among the members that were read, from 1.
        suspicion: the sum over all attacks of −log₁₀ of the share of non-members that score as high.
        attack: the attack that recognises it best.
        values: its values, without images and series.
    """

    row: int
    suspicion: float
    attack: str
    values: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {"row": self.row, "suspicion": self.suspicion, "attack": self.attack, "values": self.values}


def find_worst_records(scores: Mapping[str, Scores], members: Sample) -> list[WorstRecord]:
    """Return the members with the highest suspicion, at most a hundred."""
    if not scores:
        return []
    places = next(iter(scores.values())).places
    suspicion = np.array([_compute_suspicion(own) for own in scores.values()])
    total = np.where(places >= 0, suspicion.sum(axis=0), -np.inf)
    worst = np.argsort(-total, kind="stable")[: min(WORST, int((places >= 0).sum()))]
    names = list(scores)
    rows = np.searchsorted(members.places, places[worst])
    values = _read_values(members, rows)
    return [
        WorstRecord(int(places[each]) + 1, round(float(total[each]), 3), names[int(suspicion[:, each].argmax())], own)
        for each, own in zip(worst.tolist(), values, strict=True)
    ]


def _compute_suspicion(scores: Scores) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return −log₁₀ of the share of non-members that score as high as each candidate; 0 where none was guessed."""
    others = np.sort(scores.values[(scores.places < 0) & ~np.isnan(scores.values)])
    as_high = len(others) - np.searchsorted(others, np.nan_to_num(scores.values, nan=-np.inf), side="left")
    found = -np.log10((1 + as_high) / (1 + len(others)))
    return np.where(np.isnan(scores.values), 0.0, found)


def _read_values(members: Sample, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[dict[str, Any]]:
    records = members.records.take(rows)
    shown = {
        name: column.to_json(records.codes[name])
        for name, column in records.schema.columns.items()
        if column.form in (Form.SCALAR, Form.SET)
    }
    return [{name: _to_plain(values[place]) for name, values in shown.items()} for place in range(len(rows))]


def _to_plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list | type(None)) else str(value)
