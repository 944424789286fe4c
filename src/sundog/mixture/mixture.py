"""A mixture of models (DPGM, Acs et al. 2019, Algorithm 1): similar records share a component.

1. Private kernel k-means finds centres, and each record is assigned to the nearest: its part is a function of the
record and of public values. 2. The components are trained on their parts, all at once; a record is in one part, so the
trainings cost as much as one (docs/mixture.md). 3. Noisy counts of the parts are the weights of the components. Under
conditions, a component is drawn in proportion to its weight and to the probability of the conditions in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.mixture.clustering import Clusters, find_clusters
from sundog.mixture.clustering_plan import ClusteringPlan, plan_clustering
from sundog.mixture.configuration import MixtureConfiguration
from sundog.mixture.released import CLUSTER, ReleasedMixture, join_components, make_all_private, split_components
from sundog.models.neural.features import Features, join_codes
from sundog.models.neural.network_training import warm_up
from sundog.models.neural.noisy_means import calibrate_share
from sundog.models.protocol import Codes, FitContext, HasLogDensity, Parts, PartsModel, Plan, State, Where, to_code_set
from sundog.models.registry import get_model
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import check_unpaid, measure_once

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MixturePlan:
    """The public numbers of a fit.

    Args:
        configuration: of the clustering and of the components.
        clustering: what finding the clusters costs.
        component: the plan of the components; they are fitted together, for the price of one.
    """

    configuration: MixtureConfiguration
    clustering: ClusteringPlan
    component: Plan

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Those of the clustering, then those of the components."""
        return (*self.clustering.charges, *self.component.charges)


class Mixture:
    """Components of one kind, and their weights."""

    name: ClassVar[str] = "mixture"

    def __init__(self, components: Sequence[PartsModel], weights: Floats, records: int, *, public: bool) -> None:
        self.components = list(components)
        self.weights = weights
        self.records = records
        self.public = public  # whether public records began the clustering

    # --- learning ---

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: MixtureConfiguration,
        *,
        already: Sequence[Charge],
        records: int | None,
    ) -> MixturePlan:
        """Plan a clustering for a share of the budget, and the components, for the price of one, with the rest."""
        configuration.check(schema)
        clustering = plan_clustering(
            _take_share(budget, configuration.clustering),
            records=max(1, records or 0),
            clusters=configuration.clusters,
            kernel=configuration.kernel,
            dimension=configuration.dimension,
            iterations=configuration.iterations,
            public=configuration.public,
        )
        component = get_model(configuration.component.name).plan(
            make_all_private(schema),
            budget,
            configuration.component,
            already=[*already, *clustering.charges],
            records=records,
        )
        return MixturePlan(configuration, clustering, component)

    @classmethod
    def fit(cls, records: Records, plan: MixturePlan, ledger: Ledger, context: FitContext) -> Self:
        """Find the clusters, and learn a component from each."""
        check_unpaid(plan.charges, ledger)
        warm_up(context.device)
        seen = _select(records, plan.configuration)
        known = None if context.public is None else _select(context.public, plan.configuration)
        features = Features(seen.schema)

        def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
            return find_clusters(features, seen, plan.clustering, ledger, replace(context, public=known)).to_tensors()

        found = measure_once("clusters", plan.clustering.charges, measure, ledger, context.checkpoint)
        clusters = Clusters.from_tensors(found, context.device)
        weights = np.maximum(clusters.counts, 0.0) + 1e-9
        weights /= weights.sum()
        count = plan.clustering.records
        parts = Parts(clusters.assign(features, seen), tuple(float(weight) * count for weight in weights))
        private = Records(make_all_private(records.schema), records.codes, len(records))
        kind = cast(type[PartsModel], get_model(plan.configuration.component.name))
        components = kind.fit_parts(private, parts, plan.component, ledger, context)
        return cls(components, weights, count, public=plan.configuration.public)

    # --- sampling ---

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw a component for each record, and the record from it."""
        chances = self._compute_chances(where)
        rest = {name: codes for name, codes in where.items() if name != CLUSTER}
        counts = rng.multinomial(n, chances)
        drawn = [
            component.sample(int(count), rng, rest)
            for component, count in zip(self.components, counts, strict=True)
            if count
        ]
        codes = join_codes(drawn or [self.components[0].sample(0, rng, rest)])
        order = rng.permutation(n)
        return {name: values[order] for name, values in codes.items()}

    def log_evidence(self, where: Where) -> float:
        """Return the logarithm of the probability of the conditions."""
        return float(_sum_logs(self._compute_log_joint(where)))

    def log_density(self, records: Records) -> Floats:
        """Return the log-density of each record; the components must have densities with the same constant."""
        components = [component for component in self.components if isinstance(component, HasLogDensity)]
        if len(components) < len(self.components):
            raise DataError(f"a {self.components[0].name} model has no density; leave the likelihood out")
        logs = [component.log_density(records) for component in components]
        return np.asarray(np.logaddexp.reduce(np.array(logs) + _take_log(self.weights)[:, None], axis=0))

    def _compute_chances(self, where: Where) -> Floats:
        chosen = self._mark_allowed(where)
        if chosen.sum() == 1 or not (chosen * self.weights).any():  # a condition may select an empty cluster
            return np.asarray(chosen / chosen.sum())
        joint = self._compute_log_joint(where)
        if np.isneginf(joint).all():  # by the rules of the schema
            raise DataError("where: no record can satisfy all conditions together")
        found = np.exp(joint - joint.max())
        return np.asarray(found / found.sum())

    def _compute_log_joint(self, where: Where) -> Floats:
        """Return the joint log-probability of each component and the conditions."""
        rest = {name: codes for name, codes in where.items() if name != CLUSTER}
        logs = _take_log(self.weights * self._mark_allowed(where))
        if not rest:
            return logs
        return np.array(
            [
                log + component.log_evidence(rest) if np.isfinite(log) else -np.inf
                for log, component in zip(logs, self.components, strict=True)
            ]
        )

    def _mark_allowed(self, where: Where) -> Floats:
        """Return 1 for each component that the conditions allow, 0 for the others."""
        if CLUSTER not in where:
            return np.ones(len(self.weights))
        clusters = to_code_set(where[CLUSTER])
        return np.array([float(number in clusters) for number in range(len(self.weights))])

    # --- the release ---

    def state(self) -> State:
        """Return the arrays of all components."""
        states = [component.state() for component in self.components]
        config = {
            "of": self.components[0].name,
            "records": self.records,
            "public": self.public,
            "components": [state.config for state in states],
        }
        return State({**join_components([state.tensors for state in states]), "weights": self.weights}, config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the mixture of a state; each component checks its own arrays."""
        ReleasedMixture(schema, state)
        config, private = state.config, make_all_private(schema)
        kind = cast(type[PartsModel], get_model(config["of"]))
        components = [kind.from_state(private, part) for part in split_components(state)]
        return cls(components, state.tensors["weights"].copy(), config["records"], public=config["public"])


def _take_share(budget: Budget, share: float) -> Budget:
    """Return a share of the budget, measured in 1 / noise_multiplier², as a budget of its own."""
    part = Charge(event=Gaussian(noise_multiplier=calibrate_share(budget, share)), purpose="clustering")
    return Budget(compute_epsilon([part], delta=budget.delta), budget.delta)


def _select(records: Records, configuration: MixtureConfiguration) -> Records:
    """Return the records with the columns by which they are clustered."""
    names = configuration.list_columns(records.schema)
    columns = {name: column for name, column in records.schema.columns.items() if name in names}
    schema = records.schema.model_copy(update={"columns": columns})
    return Records(schema, {name: records.codes[name] for name in columns}, len(records))


def _take_log(weights: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


def _sum_logs(logs: Floats) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(logs))
