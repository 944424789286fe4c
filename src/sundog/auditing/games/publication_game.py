"""The game for published figures: the accuracy and the fidelity that `evaluate` publishes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sundog.auditing.games.game import Game
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.publication import Publication
from sundog.privacy.ledger import Ledger

_RIGHT, _TESTED = 5, 10  # of a model's predictions, without the record
_OTHERS = 20  # real records that are always there


def make_publication_game(*, scale: float) -> Game:
    """Return the game of the figures of one report.

    >>> make_publication_game(scale=2.0).name
    'published figures'

    Args:
        scale: of the noise of the marginals.
    """
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "values": ["a", "b"]}}})
    synthetic = _make_records(schema, np.zeros(10, np.int64))

    def play(present: bool, ledger: Ledger) -> Sequence[float]:
        real = _make_records(schema, np.r_[np.zeros(_OTHERS, np.int64), np.ones(int(present), np.int64)])
        figures = Publication(schema, ("accuracy",), scale, ledger).measure(
            real, synthetic, {"accuracy": _RIGHT + present}, _TESTED + present
        )
        return [figure.value for figure in figures.values()]

    return Game("published figures", play)


def _make_records(schema: Schema, codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Records:
    return Records(schema, {"x": codes.astype(schema.columns["x"].dtype)}, len(codes))
