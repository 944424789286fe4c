"""Games for models: a fit of each kind on the smallest pair of tables that is a worst case for it.

The attacker sees the measured: all noisy measurements of the fit. Its score is the likelihood ratio of these, a sum
over all measurements of (noisy − expected) · shift / variance; for the marginals of columns and of pairs both the
expected count and the shift are known exactly. The last attack reads the number of records in the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.games.game import Game, GameResult, run_game
from sundog.auditing.games.memory_checkpoint import MemoryCheckpoint
from sundog.auditing.games.network_attack import NetworkAttack
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ArgumentError
from sundog.mixture.clustering import Clusters
from sundog.mixture.mixture import MixturePlan
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.independent.independent import IndependentPlan
from sundog.models.marginals.bucket_tree import Clique
from sundog.models.marginals.marginals import Marginals, list_chosen
from sundog.models.marginals.marginals_plan import MarginalsPlan
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext, Model
from sundog.models.registry import MIXTURE, configure, get_model
from sundog.privacy.ledger import Budget, Ledger
from sundog.progress import Progress, silent

Floats = npt.NDArray[np.float64]
Read = Callable[[Any, MemoryCheckpoint], list[float]]

_DELTA = 1e-5
_COLUMNS = 3  # of models of counts, with
_VALUES = 4  # values each; networks have one such column, because their fits take longer
_TIED = 400  # records of each of two values, of two columns that agree: enough for their pair to be measured


@dataclass(frozen=True)
class ModelGame:
    """A model, its plan, and the two tables; `play` fits once.

    Args:
        kind: the class of the model.
        plan: of the fit.
        tables: without the record, and with it.
        read: returns the scores of a fitted model and its measured.
        device: where networks train.
    """

    kind: type[Model]
    plan: Any
    tables: tuple[Records, Records]
    read: Read
    device: str = "cpu"

    def play(self, present: bool, ledger: Ledger) -> Sequence[float]:
        """Fit with or without the record, and return the scores of all attacks."""
        measured = MemoryCheckpoint()
        context = FitContext(seed=0, checkpoint=measured, device=self.device)
        model = self.kind.fit(self.tables[present], self.plan, ledger, context)
        return [*self.read(model, measured), float(model.state().config["records"])]


def make_model_game(name: str, *, epsilon: float, delta: float = _DELTA, device: str = "cpu") -> Game:
    """Return the game of a model.

    >>> make_model_game("independent", epsilon=4.0).name
    'independent'

    Args:
        name: of a model, or "mixture" for one of independent columns.
        epsilon: of the fits.
        delta: of the fits.
        device: where networks train: `cpu` or `cuda`.
    """
    if name not in _MAKERS:
        raise ArgumentError(f"there is no game for model {name!r}; choose one of {', '.join(_MAKERS)}")
    return Game(name, replace(_MAKERS[name](name, Budget(epsilon, delta)), device=device).play)


def play_model(
    name: str,
    *,
    epsilon: float = 4.0,
    runs: int = 1000,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = silent,
) -> GameResult:
    """Play the game of a model, and return what it shows.

    >>> play_model("independent", runs=40).alarm
    False

    Args:
        name: of a model; `list_model_games` has all of them.
        epsilon: of the fits, at δ = 1e-5.
        runs: with the record and without it, together.
        seed: of the test noise.
        device: where networks train: `cpu` or `cuda`.
        progress: the callback for progress messages.
    """
    game = make_model_game(name, epsilon=epsilon, device=device)
    return run_game(game, runs=runs, seed=seed, delta=_DELTA, progress=progress)


def list_model_games() -> list[str]:
    """Return the names of the models that have a game."""
    return list(_MAKERS)


# --- tables --------------------------------------------------------------------------------------------------------


def _declare_table(columns: int, *, values: int, records: int) -> Schema:
    names = [f"v{code}" for code in range(values)]
    declared = {f"c{place}": {"type": "categorical", "values": names} for place in range(columns)}
    return Schema.from_dict({"records": records, "columns": declared})


def _fill_table(schema: Schema, codes: npt.NDArray[np.int64]) -> Records:
    """Return a table from codes, (records, columns)."""
    columns = {
        name: codes[:, place].astype(column.dtype) for place, (name, column) in enumerate(schema.columns.items())
    }
    return Records(schema, columns, len(codes))


def _make_empty_pair(columns: int) -> tuple[Records, Records]:
    """Return a table without records, and one with a single record."""
    schema = _declare_table(columns, values=_VALUES, records=1)
    empty = np.zeros((0, columns), np.int64)
    return _fill_table(schema, empty), _fill_table(schema, np.ones((1, columns), np.int64))


# --- models of counts ----------------------------------------------------------------------------------------------


def _make_independent_game(name: str, budget: Budget) -> ModelGame:
    tables = _make_empty_pair(_COLUMNS)
    kind, plan = _plan(name, tables[0].schema, budget)
    return ModelGame(kind, plan, tables, lambda _, measured: [_score_columns(plan, tables[1], measured, 0)])


def _score_columns(plan: IndependentPlan, record: Records, measured: MemoryCheckpoint, part: int) -> float:
    """Return the likelihood ratio of the marginals of a part, where the record is alone."""
    total = 0.0
    for place, (name, sigma) in enumerate(plan.sigma.items()):
        shift = get_marginal(record.schema.columns[name]).count(record.codes[name])
        noisy = measured.tensors["marginals"][str(place)][part]
        total += float((shift * (noisy - shift / 2)).sum()) / sigma**2
    return total


def _make_mixture_game(_: str, budget: Budget) -> ModelGame:
    tables = _make_empty_pair(_COLUMNS)
    schema, record = tables[0].schema, tables[1]
    configuration = configure("independent", {"iterations": 1, "dimension": 16}, clusters=2)
    kind, features = get_model(MIXTURE), Features(schema)
    plan: MixturePlan = kind.plan(schema, budget, configuration, already=(), records=1)

    def read(_: Any, measured: MemoryCheckpoint) -> list[float]:
        clusters = Clusters.from_tensors(measured.tensors["clusters"])
        (part,) = clusters.assign(features, record)
        assert isinstance(plan.component, IndependentPlan)  # noqa: S101  as configured
        return [_score_columns(plan.component, record, measured, int(part))]

    return ModelGame(kind, plan, tables, read)


def _make_marginals_game(name: str, budget: Budget) -> ModelGame:
    """Return the game of two columns that agree in all records but one, so that their pair is measured."""
    schema = _declare_table(2, values=2, records=2 * _TIED)
    tied = np.repeat([0, 1], _TIED)[:, None].repeat(2, axis=1)
    without, with_record = (_fill_table(schema, codes) for codes in (tied, np.concatenate([tied, [[0, 1]]])))
    kind, plan = _plan(name, schema, budget)
    return ModelGame(
        kind,
        plan,
        (without, with_record),
        lambda model, measured: [_score_marginals(model, plan, without, with_record.take([-1]), measured)],
    )


def _score_marginals(
    model: Marginals, plan: MarginalsPlan, others: Records, record: Records, measured: MemoryCheckpoint
) -> float:
    """Return the likelihood ratio of all measured columns and pairs, given which pairs were chosen."""
    names, axes = list(plan.sigma), model.axes
    codes = [[each.codes[name].astype(int) for name in names] for each in (others, record)]
    values = [axes.encode(each.codes) for each in (others, record)]
    total = 0.0
    for place, sigma in enumerate(plan.sigma.values()):
        total += _compare(measured.tensors["columns"][f"0.{place}"], (place,), codes, sigma, 1)
    for number, each in enumerate(plan.rounds):
        units = dict(zip(model.potentials, model.units[number], strict=True))
        chosen = list_chosen(measured.tensors[f"choice {number}"], 0)
        for index, clique in enumerate(chosen):
            noisy = measured.tensors[f"measured {number}"][f"0.{index}"]
            total += _compare(noisy, clique, values, each.sigma, units[clique])
        for place, name in enumerate(names):
            noisy = measured.tensors[f"measured {number}"][f"0.{len(chosen) + place}"]
            total += _compare(noisy, (place,), codes, each.sigma, units[axes.find_clique([name])])
    return total


def _compare(
    noisy: npt.NDArray[Any], clique: Clique, values: Sequence[Sequence[npt.NDArray[Any]]], sigma: float, units: int
) -> float:
    """Return the likelihood ratio of a sum of `units` noisy counts; the record adds `units` to one cell."""
    others, record = ([each[v] for v in clique] for each in values)
    cell = tuple(int(each[0]) for each in record)
    known = np.logical_and.reduce([each == value for each, value in zip(others, cell, strict=True)])
    return float(noisy[cell] - units * (known.sum() + 0.5)) / sigma**2


# --- networks ------------------------------------------------------------------------------------------------------

_SMALL = {"hidden": 4, "epochs": 1, "means": 0.3, "clip": 0.01}  # a record's gradient is always clipped
_NETWORK_SETTINGS: dict[str, dict[str, Any]] = {
    "rbm": {**_SMALL, "chains": 8, "moves": 1},
    "vae": {**_SMALL, "latent": 1, "hidden": 1},  # the more latent variables, the more random a gradient is
    "gan": {**_SMALL, "latent": 2, "shape": "mlp", "condition": None},
}


def _make_network_game(name: str, budget: Budget) -> ModelGame:
    """Return the game of a network that takes one step on all records."""
    tables = _make_empty_pair(1)
    kind, plan = _plan(name, tables[0].schema, budget, _NETWORK_SETTINGS[name])
    attack = NetworkAttack(kind, plan, tables, has_public_loss=name == "rbm")
    return ModelGame(kind, plan, tables, lambda _, measured: attack.score(measured))


def _plan(name: str, schema: Schema, budget: Budget, settings: dict[str, Any] | None = None) -> tuple[type[Model], Any]:
    kind = get_model(name)
    return kind, kind.plan(schema, budget, configure(name, settings or {}), already=(), records=schema.records)


_MAKERS: dict[str, Callable[[str, Budget], ModelGame]] = {
    "independent": _make_independent_game,
    "marginals": _make_marginals_game,
    "rbm": _make_network_game,
    "vae": _make_network_game,
    "gan": _make_network_game,
    "mixture": _make_mixture_game,
}
