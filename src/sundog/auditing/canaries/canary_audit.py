"""An audit in one run: a twin of a fit, with canaries among its records, and what guesses about them prove.

    the twin has the records, the plan and the noise of a fit, and canaries that are included by a fair coin each
    networks: a canary is an example with a gradient of its own                     gradient_canaries.py
    models of marginals: a canary is a record in cells of its own                   table_canaries.py
    guess about the canaries whose scores say the most
    p-value of the number of right guesses under the trade-off curve of the charges         the verdict
    lower bounds on ε: f-DP (Gaussian family), and Steinke, Nasr and Jagielski              the figures

The twin is fitted on private records and spends a budget of its own that no certificate mentions: neither the twin nor
the finding is private, and both stay with the curator.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.canaries.canary_guesses import CanaryGuesses
from sundog.auditing.canaries.gradient_canaries import GradientCanaries
from sundog.auditing.canaries.one_run_bounds import choose_guesses
from sundog.auditing.canaries.one_run_p_values import Floats
from sundog.auditing.canaries.table_canaries import TableCanaries
from sundog.auditing.tradeoff_curve import compute_gaussian_mu, compute_tradeoff_curve
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, BudgetExceededError, NotApplicableError, SchemaError, SundogError
from sundog.fit.request import choose_configuration
from sundog.fit.rule_check import drop_derived
from sundog.models.configuration import Configuration
from sundog.models.protocol import FitContext, Model
from sundog.models.registry import get_model
from sundog.privacy.budget import check_budget
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.progress import Progress, silent

Bools = npt.NDArray[np.bool_]

OF_MARGINALS = ("independent", "marginals")  # models that have tables to plant canaries in
_COINS = 0xC014  # which of the generators of a seed
_FEWEST, _MOST = 50, 20_000  # canaries
_IN_NETWORKS, _IN_TABLES = 1000, 5000  # by default: few weights, many cells


@dataclass(frozen=True)
class CanaryFinding:
    """What the guesses about the canaries of one twin fit prove. NOT PRIVATE: for the curator only.

    Args:
        model: that was fitted.
        guesses: how many canaries there were, how many were guessed, and how many rightly.
        epsilon: that the charges of the fit promise at δ.
        delta: of the promise.
        epsilon_bound: the lower bound on ε at δ by f-DP, for mechanisms with Gaussian DP.
        steinke_bound: the lower bound of Steinke, Nasr and Jagielski, for any (ε, δ)-DP mechanism.
        p_value: the probability of so many right guesses, at most, if the trade-off curve of the charges holds.
        confidence: of both bounds and of the verdict.
    """

    model: str
    guesses: CanaryGuesses
    epsilon: float
    delta: float
    epsilon_bound: float
    steinke_bound: float
    p_value: float
    confidence: float

    @property
    def refutes(self) -> bool:
        """Whether the guesses contradict the promise; that of a correct fit happens in 1 − confidence of all audits."""
        return self.p_value <= 1 - self.confidence

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON values."""
        return {**asdict(self), "refutes": self.refutes}

    def __str__(self) -> str:
        found, at = self.guesses, f"at δ = {self.delta:.3g}, with {self.confidence:.0%} confidence"
        verdict = "REFUTES the promise" if self.refutes else "does not contradict the promise"
        return (
            f"canaries   {found.canaries:,} in one fit of {self.model}; {found.correct:,} of {found.guesses:,} guesses "
            f"are right\n"
            f"proven     ε ≥ {self.epsilon_bound:.2f} by f-DP (Gaussian), ε ≥ {self.steinke_bound:.2f} by Steinke et "
            f"al., {at}\n"
            f"promised   ε = {self.epsilon:.3g}\n"
            f"verdict    {verdict} (p = {self.p_value:.2g} under its trade-off curve)"
        )


def audit_with_canaries(
    data: Any,
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    model: str = "auto",
    epsilon: float,
    delta: float,
    settings: Mapping[str, Any] | None = None,
    clusters: int = 1,
    canaries: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
    labels: Any = None,
    progress: Progress = silent,
    noise: NoiseSource | None = None,
) -> CanaryFinding:
    """Fit a twin with canaries among the records, and return what guesses about them prove.

    It costs about what a fit costs. The finding depends on private records: it is for the curator.

    Args:
        data: the private records: encoded, a path, a DataFrame, or any other source that `fit` accepts.
        schema: of the records; complete.
        model: as for `fit`.
        epsilon: of the fit.
        delta: of the fit.
        settings: of the model.
        clusters: how many components the model has.
        canaries: how many there are, each of which is planted by a fair coin; by default 1,000 for networks and 5,000
            for models of marginals.
        confidence: of the bounds and the verdict.
        seed: of the canaries and of the initial weights, never of the noise.
        labels: class labels of images or series, when they are not part of the data.
        progress: is called with the current stage and the part of it that is done.
        noise: where noise is drawn, for tests.
    """
    check_budget(epsilon, delta)
    _check_arguments(canaries, confidence)
    records = _read_records(data, Schema.of(schema), labels, progress)
    configuration = choose_configuration(
        model, records.schema, epsilon=epsilon, records=_count(records), settings=settings, clusters=clusters
    )
    ledger = Ledger(epsilon=epsilon, delta=delta, noise=noise)
    twin = _Twin(records, configuration, ledger, FitContext(seed, progress))
    # the model's own generators have the seed, too, and coins must be independent of them
    rng = np.random.default_rng(None if seed is None else [seed, _COINS])
    included, scores = twin.score(canaries, rng)
    return _conclude(configuration.title, scores, included, ledger, confidence=confidence)


@dataclass(frozen=True)
class _Twin:
    """A fit that is audited.

    Args:
        records: without canaries.
        configuration: of the model.
        ledger: a new one, which pays for the twin.
        context: of the fit.
    """

    records: Records
    configuration: Configuration
    ledger: Ledger
    context: FitContext

    def score(self, canaries: int | None, rng: np.random.Generator) -> tuple[Bools, Floats]:
        """Fit the twin, and return which canaries were included, and their scores."""
        is_table = getattr(self.configuration, "component", self.configuration).name in OF_MARGINALS
        included = rng.random(canaries or (_IN_TABLES if is_table else _IN_NETWORKS)) < 0.5
        return included, self._score_tables(included) if is_table else self._score_gradients(included, rng)

    def _score_tables(self, included: Bools) -> Floats:
        """Fit a widened table."""
        table = TableCanaries(self.records, len(included))
        widened = table.schema
        try:
            self.configuration.check(widened)
        except SundogError as error:
            raise NotApplicableError(f"the table cannot be widened: {error}") from None
        model = self._fit(table.plant(included), self.context)
        return table.score(getattr(model, "components", [model]))

    def _score_gradients(self, included: Bools, rng: np.random.Generator) -> Floats:
        """Train a network with canaries."""
        planted = GradientCanaries(included, rng)
        self._fit(self.records, replace(self.context, canaries=planted))
        if not planted.steps:
            raise NotApplicableError(
                f"model {self.configuration.name!r} has neither marginals nor a training to plant canaries in"
            )
        return planted.scores

    def _fit(self, records: Records, context: FitContext) -> Model:
        kind = get_model(self.configuration.name)
        count = _count(self.records)
        try:
            plan = kind.plan(records.schema, self.ledger.budget, self.configuration, already=[], records=count)
        except BudgetExceededError as error:  # nothing is spent yet: only a refused charge breaks a promise
            raise NotApplicableError(f"the twin cannot be planned: {error}") from None
        return kind.fit(records, plan, self.ledger, context)


def _count(records: Records) -> int:
    """Return the number of records that plans are made for: as declared, or exact, since the twin is not released."""
    return records.schema.records or max(1, len(records))


def _check_arguments(canaries: int | None, confidence: float) -> None:
    if canaries is not None and not _FEWEST <= canaries <= _MOST:
        raise ArgumentError(f"canaries must be between {_FEWEST} and {_MOST:,}, not {canaries}")
    if not 0.5 <= confidence < 1:
        raise ArgumentError(f"confidence must be at least 0.5 and below 1, not {confidence}")


def _read_records(data: Any, schema: Schema, labels: Any, progress: Progress) -> Records:
    if not schema.complete:
        raise SchemaError("schema: columns with `learn: true` cannot be audited; use the schema of the release")
    if isinstance(data, Records):
        return drop_derived(replace(data, schema=schema), schema.modelled)
    progress("reading", 0.0)
    defaults = {name: column.with_default_bins() for name, column in schema.scalars.items() if column.awaits_quantiles}
    schema = schema.with_columns(defaults) if defaults else schema
    return drop_derived(encode(read(data, schema, labels=labels), schema), schema.modelled)


def _conclude(model: str, scores: Floats, included: Bools, ledger: Ledger, *, confidence: float) -> CanaryFinding:
    """Guess, as often as the promise says, and test the promise."""
    charges, delta = ledger.charges, ledger.budget.delta
    epsilon = compute_fit_epsilon(charges, delta=delta)
    mu = compute_gaussian_mu(epsilon=epsilon, delta=delta)
    number = choose_guesses(len(scores), mu=mu, confidence=confidence)
    guesses = CanaryGuesses.make(scores, included, guesses=number)
    return CanaryFinding(
        model,
        guesses,
        epsilon=epsilon,
        delta=delta,
        epsilon_bound=guesses.bound_gaussian_epsilon(delta=delta, confidence=confidence),
        steinke_bound=guesses.bound_epsilon(delta=delta, confidence=confidence),
        p_value=guesses.compute_p_value(compute_tradeoff_curve(charges)),
        confidence=confidence,
    )
