"""What a model of marginals spends: each column's own marginal, then rounds of choosing pairs and measuring them.

Costs are parts of 1/scale²: n measurements with noise σ, each of sensitivity one, cost n/σ². Gaussian noise composes
by adding these up, so the parts say how much of the budget goes where; the exact cost is the accountant's conclusion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sundog.data.schema import Schema
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.independent.released import name_marginal_purpose
from sundog.models.marginals.clique_selection import bound_weight, weigh_size
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.released import list_scalars, name_choice_purpose, name_measured_purpose
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge, DiscreteGaussian, Pure
from sundog.privacy.ledger import Budget
from sundog.privacy.mechanisms.counts import compute_histogram_charge

ONE_WAY = 0.10  # of the cost, for the marginals of single columns
SCORES = 0.03  # of the cost, for choosing what a round measures
MEASURED = (0.35, 0.49)  # of the cost, for what each round measures
_CLIQUES = (1.0, 3.0)  # how many marginals each round measures at the most, for each column but one
_UNITS = 16  # a marginal's noise is lowered by measuring it several times; this often, on average


@dataclass(frozen=True)
class Round:
    """A round: all marginals up to an order are scored, and the best are measured.

    Args:
        order: the most columns of a marginal.
        choice: what choosing costs: noise on every score, or an exponential mechanism for every marginal.
        cliques: how many marginals are measured, at the most.
        units: how many measurements there are, of all marginals together.
        sigma: of the noise in each cell of a measurement.
        is_forest: whether no pair is measured whose columns are connected by others.
    """

    order: int
    choice: Charge
    cliques: int
    units: int
    sigma: float
    is_forest: bool


@dataclass(frozen=True)
class MarginalsPlan:
    """The public numbers of a fit.

    Args:
        configuration: of the model.
        charges: of the columns' marginals, then, for each round, of choosing and of measuring.
        sigma: of the noise in each bin of a private column's own marginal, by column.
        rounds: of choosing and measuring; none if there is one scalar column, or none of them is private.
        scale: the noise of one measurement with the whole budget.
    """

    configuration: MarginalsConfiguration
    charges: tuple[Charge, ...]
    sigma: Mapping[str, float]
    rounds: tuple[Round, ...]
    scale: float

    @property
    def one_way_charges(self) -> tuple[Charge, ...]:
        """The charges of the columns' own marginals."""
        return self.charges[: len(self.sigma)]

    def round_charges(self, number: int) -> tuple[Charge, Charge]:
        """Return the charges of a round: for choosing, and for measuring."""
        choice, measured = self.charges[len(self.sigma) + 2 * number :][:2]
        return choice, measured


def plan_marginals(
    schema: Schema, budget: Budget, configuration: MarginalsConfiguration, already: Sequence[Charge]
) -> MarginalsPlan:
    """Return the plan that, together with what was charged before, spends the budget."""

    def plan(scale: float) -> MarginalsPlan:
        sigma, rounds = _divide_one_way(schema, scale), _divide_rounds(schema, configuration, scale)
        charges = tuple(_list_charges(schema, sigma, rounds))
        return MarginalsPlan(configuration, charges, sigma, rounds, scale)

    if not plan(1.0).charges:
        return plan(1.0)
    scale = find_smallest_noise(lambda s: [*already, *plan(s).charges], epsilon=budget.epsilon, delta=budget.delta)
    return plan(scale)


def _divide_one_way(schema: Schema, scale: float) -> dict[str, float]:
    """Return the noise of each private column's marginal; public columns are counted exactly, and cost nothing."""
    found = {name: get_marginal(column) for name, column in schema.columns.items() if not column.public}
    whole = sum(each.touched * weigh_size(each.cells) for each in found.values())
    return {name: scale * math.sqrt(whole / (ONE_WAY * weigh_size(each.cells))) for name, each in found.items()}


def _divide_rounds(schema: Schema, configuration: MarginalsConfiguration, scale: float) -> tuple[Round, ...]:
    scalars = list_scalars(schema)
    columns = len(scalars)
    if columns < 2 or all(schema.columns[name].public for name in scalars):
        return ()
    found = []
    for number, (share, per_column) in enumerate(zip(MEASURED, _CLIQUES, strict=True)):
        # Triples come last: what shows in pairs is known by then.
        order = configuration.choose_order(columns) if number == len(MEASURED) - 1 else 2
        purpose = name_choice_purpose(number)
        for most in range(order, 1, -1):
            candidates = sum(math.comb(columns, size) for size in range(2, most + 1))
            cliques = min(math.ceil(per_column * (columns - 1)), candidates)
            choice = _plan_choice(schema, candidates, cliques, scale, purpose)
            if isinstance(choice.event, DiscreteGaussian):  # triples are judged by the noisy scores of their pairs
                break
        units = _UNITS * (cliques + columns)  # each column is measured again
        found.append(Round(most, choice, cliques, units, scale * math.sqrt(units / share), is_forest=number == 0))
    return tuple(found)


def _plan_choice(schema: Schema, candidates: int, cliques: int, scale: float, purpose: str) -> Charge:
    """Return the cheaper way of choosing among candidates: noise on all scores, or the exponential mechanism.

    The largest noise of n scores is about σ√(2 log n) and grows with √n; that of the exponential mechanism is about
    2 log(n)/ε, whatever n is, for each choice. Scores have a sensitivity of one however many records a unit has, so
    that their noise can be smaller by √cap than that of counts.
    """
    sigma = scale * math.sqrt(candidates / (SCORES * schema.cap))
    epsilon = math.sqrt(SCORES * schema.cap / cliques) / scale
    if 2 * bound_weight(schema) * math.log(candidates) / epsilon < sigma * math.sqrt(2 * math.log(candidates)):
        return Charge(event=Pure(epsilon=epsilon), count=cliques, purpose=purpose)
    return Charge(event=DiscreteGaussian(sigma=sigma), count=candidates, purpose=purpose)


def _list_charges(schema: Schema, sigma: Mapping[str, float], rounds: Sequence[Round]) -> list[Charge]:
    charges = [
        compute_histogram_charge(
            sigma=noise,
            purpose=name_marginal_purpose(name),
            touched=get_marginal(schema.columns[name]).touched,
            contribution=schema.cap,
        )
        for name, noise in sigma.items()
    ]
    for number, each in enumerate(rounds):
        noise, count = DiscreteGaussian(sigma=each.sigma), each.units * schema.cap
        charges += [each.choice, Charge(event=noise, count=count, purpose=name_measured_purpose(number))]
    return charges
