"""Synthetic records that satisfy the rules of their schema: drawn from the model, completed, and drawn again if not.

A model draws the columns that are not derived. Derived columns are computed for each record, all rules and the
conditions on derived columns are checked on what will be written, and records that fail are replaced by new draws. The
result is a sample of the model's distribution given that the rules hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.data.code_set import CodeSet
from sundog.data.columns.arrow import Mask
from sundog.data.records import stack_codes
from sundog.data.rules import RuleSet
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.models.protocol import Codes, Model

LEAST_ACCEPTED = 1 / 1000  # of the records that are drawn
_FIRST = 20  # records that may be waited for before a share is believed
_SPARE = 1.1  # draws for each record that is expected to be kept


@dataclass(frozen=True)
class RejectionSampler:
    """Draws records of a model that satisfy rules and conditions.

    Args:
        model: draws the columns that are not derived.
        schema: of the records, with all columns.
        rules: the rules of the schema.
        where: the codes that columns may have, derived ones included; or numbers of a choice.
        most: how many records to draw at a time.
    """

    model: Model
    schema: Schema
    rules: RuleSet
    where: Mapping[str, CodeSet]
    most: int

    def draw(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw n records; a DataError says so if almost none satisfies the rules."""
        given, later = self._translate()
        if not later and not self.rules.rejects:
            return self._in_order(self.rules.derive(self.model.sample(n, rng, given))[0])
        parts: list[Codes] = []
        kept = drawn = 0
        while not parts or kept < n:
            size = self._choose_size(n - kept, kept, drawn)
            codes, known = self.rules.derive(self.model.sample(size, rng, given))
            held = self._check(codes, known, later, size)
            rows = np.flatnonzero(held)[: n - kept]
            parts.append({name: codes[name][rows] for name in self.schema.columns})
            kept, drawn = kept + int(held.sum()), drawn + size
            if kept < n and drawn * LEAST_ACCEPTED >= kept + _FIRST:
                raise self._explain(kept, drawn, codes, size)
        return {name: stack_codes([part[name] for part in parts]) for name in self.schema.columns}

    def measure_acceptance(self, n: int, rng: np.random.Generator) -> float:
        """Return the share of n drawn records that satisfy rules and conditions."""
        given, later = self._translate()
        codes, known = self.rules.derive(self.model.sample(n, rng, given))
        return float(self._check(codes, known, later, n).mean())

    def _translate(self) -> tuple[dict[str, CodeSet], dict[str, CodeSet]]:
        given, later = self.rules.translate(self.where)
        for name, codes in {**given, **later}.items():
            if not codes:
                asked = " and ".join(map(repr, self.where))
                raise DataError(f"where: no value of {name!r} satisfies the conditions on {asked} together")
        return given, later

    def _choose_size(self, wanted: int, kept: int, drawn: int) -> int:
        """Return how many records to draw, by the share that was kept so far."""
        if not drawn:
            return min(max(wanted, 1), self.most)
        share = max(kept / drawn, LEAST_ACCEPTED)
        return min(max(math.ceil(_SPARE * wanted / share), 64), self.most)

    def _check(self, codes: Codes, known: Mask | None, later: Mapping[str, CodeSet], size: int) -> Mask:
        held = np.ones(size, bool) if known is None else known.copy()
        held &= self.rules.holds(codes)
        for name, allowed in later.items():
            held &= allowed.includes(codes[name])
        return held

    def _explain(self, kept: int, drawn: int, codes: Codes, size: int) -> DataError:
        """Say how few records are kept, and which rule rejects most of them."""
        broken = sorted(self.rules.find_broken(codes), key=lambda each: -each.count)
        share = f"{kept:,} of {drawn:,} records that were drawn ({kept / drawn:.2%})"
        worst = f"; `{broken[0].rule.short}` alone rejects {broken[0].count / size:.1%}" if broken else ""
        if self.where:
            fix = "ask for conditions that fit the rules"
        else:
            fix = "fit a model that learns these columns together, or declare the rule differently"
        what = "conditions and rules of the schema" if self.where else "rules of the schema"
        return DataError(f"the {what} leave {share}, too few to sample from{worst}; {fix}")

    def _in_order(self, codes: Mapping[str, Any]) -> Codes:
        return {name: codes[name] for name in self.schema.columns}
