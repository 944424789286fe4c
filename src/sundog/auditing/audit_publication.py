"""Figures of an audit for publication: an attack's guesses, counted with noise and charged to a ledger.

Whoever is likelier under the released model than nine tenths of fresh synthetic records is taken for a member. Such a
guess depends on one record and on what is public: the release, the number of fresh records and their seed. No other
attack of an audit has this: their scores depend on known members, on ranks among candidates, or on rounding in sums
over a batch. So a record, of a member or not, changes one of four counts by one, and no other; whoever is among both
changes two, and two are paid for (docs/audit.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.audit_inputs import RealData
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.errors import DataError, SundogError
from sundog.evaluation.measure import Measures, Metric, combine
from sundog.evaluation.publication import measure_noisy_share
from sundog.mixture.mixture import Mixture
from sundog.models.independent.independent import Independent
from sundog.models.marginals.marginals import Marginals
from sundog.models.protocol import HasLogDensity
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import Histogram, compute_histogram_charge, noisy_histogram
from sundog.release.release import Release

PURPOSE = "published guesses about members and non-members"
_TOUCHED = 2  # counts: of members and of non-members
_FRESH, _SEED, _LIKELY = 10_000, 0, 0.9  # synthetic records, their seed, and the share that guesses must exceed

METRICS = {
    "membership.members_guessed": Metric(
        "Members taken for members", "low", "of those who are likelier than nine tenths of synthetic records"
    ),
    "membership.nonmembers_guessed": Metric(
        "Non-members taken for members", "low", "the same share of people that the release was not fitted on"
    ),
    "membership.advantage": Metric("Advantage of guessing by likelihood", "low", "the first minus the second", 0.0),
}


@dataclass(frozen=True)
class AuditPublication:
    """The planned publication and its noise; nothing here depends on a record.

    Args:
        release: that is audited.
        sigma: the noise scale of the counts.
        run: the run of the ledger that is charged.
    """

    release: Release
    sigma: float
    run: Ledger

    @classmethod
    def plan(cls, release: Release | None, *, epsilon: float, ledger: Ledger) -> AuditPublication:
        """Plan a publication that costs ε; raise where it would not be private or would exceed the ledger."""
        if release is None:
            raise DataError("only figures about a release can be published: other data may contain real records")
        if release.verify() or not ledger.private:
            raise SundogError("the release or the ledger is not private: no figures can be published")
        if any(column.public for column in release.schema.columns.values()):
            raise DataError("columns are public: the ledger does not protect who is in the data; leave out publish")
        parts = release.model.components if isinstance(release.model, Mixture) else [release.model]
        if not all(isinstance(part, Independent | Marginals) for part in parts):
            raise DataError(
                f"a guess by the likelihood of {parts[0].name} may depend on other records, by rounding; only audits "
                "of independent and marginals can be published"
            )
        run = ledger.run(epsilon=epsilon, delta=ledger.budget.delta)
        cap = release.schema.cap
        sigma = find_smallest_noise(
            lambda sigma: [_compute_charge(sigma, cap)], epsilon=epsilon, delta=ledger.budget.delta
        )
        run.check(_compute_charge(sigma, cap))
        return cls(release, sigma, run)

    def measure(self, real: RealData) -> Measures:
        """Read all real records, spend the planned budget, and return what was measured."""
        schema = self.release.schema
        members = encode(read(real.members, schema, labels=real.labels), schema)
        nonmembers = encode(read(real.nonmembers, schema, labels=real.nonmember_labels), schema)
        histogram = Histogram(self.count(members, nonmembers), self.sigma, PURPOSE, _TOUCHED, schema.cap)
        noisy = noisy_histogram(
            histogram.counts,
            sigma=self.sigma,
            ledger=self.run,
            purpose=PURPOSE,
            touched=_TOUCHED,
            contribution=schema.cap,
        )
        # A person's records may all be guessed alike: intervals are those of as many people as there are at least.
        people, deviation = noisy / schema.cap, histogram.standard_deviation / schema.cap
        guessed, others = (measure_noisy_share(people[place : place + 2], deviation) for place in (0, 2))
        return dict(zip(METRICS, (guessed, others, combine((1, guessed), (-1, others))), strict=True))

    def count(self, members: Records, nonmembers: Records) -> npt.NDArray[np.int64]:
        """Return how many members are taken for members and how many not, and the same of non-members."""
        fresh = concatenate(list(self.release.batches(_FRESH, seed=_SEED)))
        threshold = np.quantile(self._score(fresh, fresh), _LIKELY, method="higher")
        counts: list[Any] = []
        for records in (members, nonmembers):
            right = int((self._score(records, fresh) > threshold).sum())
            counts += [right, len(records) - right]
        return np.array(counts, np.int64)

    def _score(self, records: Records, fresh: Records) -> npt.NDArray[np.float64]:
        """Return log-densities, of records beside fresh ones: numpy adds the numbers of a record alone otherwise."""
        model = self.release.model
        assert isinstance(model, HasLogDensity)  # noqa: S101  as planned
        return model.log_density(concatenate([records, fresh]))[: len(records)]


def _compute_charge(sigma: float, cap: int) -> Charge:
    return compute_histogram_charge(sigma=sigma, purpose=PURPOSE, touched=_TOUCHED, contribution=cap)
