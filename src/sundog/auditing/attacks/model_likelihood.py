"""The released model's own likelihood: exact for marginals, an estimate for networks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.mixture.mixture import Mixture
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.protocol import HasLogDensity
from sundog.models.rbm.rbm import Rbm

_LEAST = -1e6  # for impossible records
_SMOOTHED = 2  # counts of a reference marginal are doubled, and one is added: as if a cell had half a record more


class Likelihood(Attack):
    """The log-density of a candidate under the released model."""

    name: ClassVar[str] = "likelihood"
    description: ClassVar[str] = "the probability that the released model gives it"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.RELEASE})

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:  # noqa: ARG002
        """Return that the model has no density, if so."""
        model = threat.release.model
        parts = model.components if isinstance(model, Mixture) else [model]
        if not all(isinstance(part, HasLogDensity) for part in parts):
            return f"a model of type {parts[0].name} does not tell probabilities"
        if len(parts) > 1 and isinstance(parts[0], Rbm):
            return "the energies of different components of type rbm cannot be compared"
        return None

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return the log-densities."""
        model = threat.release.model
        assert isinstance(model, HasLogDensity)  # noqa: S101  `find_obstacle` has checked this
        return np.nan_to_num(model.log_density(candidates), nan=_LEAST, neginf=_LEAST).clip(_LEAST, -_LEAST)


class LikelihoodRatio(Likelihood):
    """The same, compared with the marginals of a reference sample; optimal against independent columns."""

    name: ClassVar[str] = "likelihood-ratio"
    description: ClassVar[str] = "the probability that the released model gives it, compared with reference marginals"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.RELEASE, Knowledge.REFERENCE})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the logarithm of the ratio."""
        return super().score(threat, candidates, rng) - _compute_reference_density(threat, candidates)


def _compute_reference_density(threat: ThreatModel, candidates: Records) -> Floats:
    """Return the log-density of candidates under independent columns, with the marginals of the reference sample."""
    reference, total = threat.reference, np.zeros(len(candidates))
    for name, column in threat.release.schema.modelled.columns.items():
        marginal = get_marginal(column)
        counts = _SMOOTHED * marginal.count(reference.codes[name]) + 1
        size = round(float(np.mean(marginal.compute_totals(counts)[0])))
        total += marginal.compute_log_density(marginal.to_probabilities(counts, size), candidates.codes[name])
    return total.clip(_LEAST, -_LEAST)
