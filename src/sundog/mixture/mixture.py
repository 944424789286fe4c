"""A mixture of models (DPGM, Acs et al. 2019, Algorithm 1): similar records share a component.

1. Private kernel k-means finds centres, and each record goes to the nearest: from here on the part a record is in is a
function of the record and of what is public. 2. The component of each part is trained on it, all at once; a record is
in one part, so the trainings cost what one does (docs/mixture.md). 3. Noisy counts of the parts are the weights with
which components are drawn from. Under conditions a component is drawn in proportion to how likely they are in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, SundogError
from sundog.mixture.clustering import (
    CLUSTERING,
    ClusteringPlan,
    Clusters,
    check_clustering,
    find_clusters,
    plan_clustering,
)
from sundog.mixture.released import (
    MOST_CLUSTERS,
    all_private,
    assumed_by_mixture,
    component_states,
)
from sundog.models.neural.features import Features, joined
from sundog.models.neural.network_training import refuse_shares, warm_up
from sundog.models.neural.noisy_means import gaussian_share
from sundog.models.protocol import Codes, FitContext, Model, Parts, Plan, State, Where, allowed
from sundog.models.registry import get_model
from sundog.models.unpaid import unpaid_clustering
from sundog.privacy.accountant import epsilon_spent
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import check_unpaid, measure_once

CLUSTER = "cluster"  # what a condition calls the number of a component
_SHARE = 0.1  # of the budget, for finding the clusters
_ASKED: Mapping[str, Any] = {"clusters": 2, "public": False}  # by options of their own
# What a user may set beside the component's settings; clusters go by all columns, a column, or a list of them.
_OWN: Mapping[str, Any] = {**CLUSTERING, "clustering": _SHARE, "by": None}

Floats = npt.NDArray[np.float64]


class Mixture:
    """Components of one kind, and how often each is drawn from. `mixture_of` makes the class for a kind."""

    name: ClassVar[str] = "mixture"
    component: ClassVar[type[Model] | None] = None
    options: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = {}
    counts_records: ClassVar[bool] = True
    private: State | None = None

    def __init__(self, components: Sequence[Model], weights: Floats, records: int, *, public: bool) -> None:
        self.components = list(components)
        self.weights = weights
        self.records = records
        self.public = public  # whether public records began the clustering

    @property
    def assumptions(self) -> Sequence[str]:
        """Where clusters began with records that were given as public."""
        return assumed_by_mixture(public=self.public)

    @property
    def choices(self) -> Mapping[str, int]:
        """A component can be asked for by its number."""
        return {CLUSTER: len(self.components)}

    # --- learning ---

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Refuses settings that are none, of the component or of the clustering."""
        cls._kind().check_settings(_components(settings))
        check_clustering(settings)
        clusters = settings["clusters"]
        if not (type(clusters) is int and 1 < clusters <= MOST_CLUSTERS):
            raise ArgumentError(f"clusters must be a whole number from 2 to {MOST_CLUSTERS}, not {clusters!r}")
        if not (type(settings["clustering"]) in (int, float) and 0 < settings["clustering"] < 1):
            raise ArgumentError(
                f"setting 'clustering' must be a number between 0 and 1, not {settings['clustering']!r}"
            )
        refuse_shares(settings)

    @classmethod
    def check(cls, schema: Schema, settings: Mapping[str, Any]) -> None:
        """Refuses what the component refuses, and clusters that are none."""
        if schema.unit is not None and schema.cap > 1:
            raise SundogError(
                f"clusters: a person has up to {schema.cap} records here, which may be in different clusters; set "
                "`cap: 1` in the schema, or leave clusters out"
            )
        cls._kind().check(schema, _components(settings))
        if CLUSTER in schema.columns:
            raise SundogError(
                f"clusters: the schema has a column {CLUSTER!r}, which is what components go by; rename it"
            )
        cls.check_settings(settings)
        _check_by(schema, settings["by"])

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        *,
        already: Sequence[Charge],
        records: int | None,
        settings: Mapping[str, Any],
    ) -> Plan:
        """A share of the budget finds the clusters; with the rest the components are planned as if they were one."""
        cls.check(schema, settings)
        clustering = plan_clustering(
            _share_of(budget, settings["clustering"]),
            records=max(1, records or 0),
            clusters=settings["clusters"],
            settings=settings,
            public=settings["public"],
        )
        component = cls._kind().plan(
            all_private(schema),
            budget,
            already=[*already, *clustering.charges()],
            records=records,
            settings=_components(settings),
        )
        public = {"records": max(1, records or 0), "by": settings["by"]}
        return Plan(
            (*clustering.charges(), *component.charges),
            {**public, "clustering": clustering.to_dict(), "component": component},
        )

    @classmethod
    def fit(cls, records: Records, plan: Plan, ledger: Ledger, context: FitContext) -> Self:
        """Finds the clusters, and learns a component from each."""
        kind = cls._kind()
        check_unpaid(plan.charges, ledger)
        warm_up(context.device)
        clustering, component = ClusteringPlan(**plan.settings["clustering"]), plan.settings["component"]
        seen = _columns_of(records, plan.settings["by"])
        known = None if context.public is None else _columns_of(context.public, plan.settings["by"])
        features = Features(seen.schema)

        def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
            return find_clusters(features, seen, clustering, ledger, replace(context, public=known)).to_tensors()

        found = measure_once("clusters", clustering.charges(), measure, ledger, context.checkpoint)
        clusters = Clusters.from_tensors(found, context.device)
        weights = np.maximum(clusters.counts, 0.0) + 1e-9
        weights /= weights.sum()
        count = plan.settings["records"]
        parts = Parts(clusters.owner(features, seen), tuple(float(weight) * count for weight in weights))
        private = Records(all_private(records.schema), records.codes, len(records))
        components = kind.fit_parts(private, parts, component, ledger, context)  # type: ignore[attr-defined]
        return cls(components, weights, count, public=clustering.public)

    @classmethod
    def _kind(cls) -> type[Model]:
        if cls.component is None or issubclass(cls.component, Mixture):
            raise SundogError("model 'mixture': say of what, such as --model vae --clusters 10")
        if not hasattr(cls.component, "fit_parts"):
            raise SundogError(f"model {cls.component.name!r} cannot be the component of a mixture; leave clusters out")
        return cls.component

    # --- sampling ---

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draws a component for each record, and the record from it."""
        chances = self._chances(where)
        rest = {name: codes for name, codes in where.items() if name != CLUSTER}
        counts = rng.multinomial(n, chances)
        drawn = [
            component.sample(int(count), rng, rest)
            for component, count in zip(self.components, counts, strict=True)
            if count
        ]
        codes = joined(drawn or [self.components[0].sample(0, rng, rest)])
        order = rng.permutation(n)
        return {name: values[order] for name, values in codes.items()}

    def log_evidence(self, where: Where) -> float:
        """The logarithm of the probability of the conditions."""
        return float(_log_sum(self._log_joint(where)))

    def _chances(self, where: Where) -> Floats:
        chosen = self._chosen(where)
        if chosen.sum() == 1 or not (chosen * self.weights).any():  # an empty cluster can be asked for
            return np.asarray(chosen / chosen.sum())
        joint = self._log_joint(where)
        found = np.exp(joint - joint.max())
        return np.asarray(found / found.sum())

    def _log_joint(self, where: Where) -> Floats:
        """Of each component, how likely it is together with the conditions."""
        rest = {name: codes for name, codes in where.items() if name != CLUSTER}
        logs = _log(self.weights * self._chosen(where))
        if not rest:
            return logs
        return np.array(
            [
                log + component.log_evidence(rest) if np.isfinite(log) else -np.inf
                for log, component in zip(logs, self.components, strict=True)
            ]
        )

    def _chosen(self, where: Where) -> Floats:
        """1 for each component that the conditions allow, 0 for the others."""
        if CLUSTER not in where:
            return np.ones(len(self.weights))
        clusters = allowed(where[CLUSTER])
        return np.array([float(number in clusters) for number in range(len(self.weights))])

    # --- the release ---

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """The clusters, and what the components learned."""
        return unpaid_clustering(charges, public=self.public) + self.components[0].unexplained(charges)

    def state(self) -> State:
        """The arrays of all components, one above the other."""
        states = [component.state() for component in self.components]
        tensors = {name: np.stack([state.tensors[name] for state in states]) for name in states[0].tensors}
        config = {
            "of": self.components[0].name,
            "records": self.records,
            "public": self.public,
            "components": [state.config for state in states],
        }
        return State({**tensors, "weights": self.weights}, config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Takes the arrays apart again; each component checks its own."""
        config, private = state.config, all_private(schema)
        components = [get_model(config["of"]).from_state(private, part) for part in component_states(state)]
        return cls(components, state.tensors["weights"], config["records"], public=config["public"])


def mixture_of(component: type[Model]) -> type[Mixture]:
    """The class of mixtures of this model.

    >>> from sundog.models.independent.independent import Independent
    >>> mixture_of(Independent).defaults["clustering"]
    0.1
    """
    members = {
        "component": component,
        "options": component.options | {"clusters", "public"},
        "defaults": {**component.defaults, **_OWN, **_ASKED},
    }
    return type(f"MixtureOf{component.__name__}", (Mixture,), members)


def _share_of(budget: Budget, share: float) -> Budget:
    """A share in the units in which Gaussians add up, 1 / noise_multiplier², as an ε."""
    part = Charge(event=Gaussian(noise_multiplier=gaussian_share(budget, share)), purpose="clustering")
    return Budget(epsilon_spent([part], delta=budget.delta), budget.delta)


def _components(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the components."""
    return {name: value for name, value in settings.items() if name not in {*_OWN, *_ASKED}}


def _check_by(schema: Schema, by: object) -> None:
    names = [by] if isinstance(by, str) else by
    right = isinstance(names, list) and names and all(type(name) is str and name in schema.columns for name in names)
    if not (names is None or right):
        raise SundogError(f"setting 'by' must be a column of the schema or a list of them, not {by!r}")


def _columns_of(records: Records, by: str | Sequence[str] | None) -> Records:
    """The records with those of their columns that clusters go by."""
    if by is None:
        return records
    names = {by} if isinstance(by, str) else set(by)
    columns = {name: column for name, column in records.schema.columns.items() if name in names}
    schema = records.schema.model_copy(update={"columns": columns})
    return Records(schema, {name: records.codes[name] for name in columns}, len(records))


def _log(weights: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


def _log_sum(logs: Floats) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(logs))
