"""The share of synthetic records that are nearer to a member than to a non-member: a similarity score.

It is widely reported as evidence of privacy, and is not: it averages over all records, so that copies of a few hardly
move it, and a model can reveal a record without being near it. It is measured here to be shown beside what attacks
prove.
"""

from __future__ import annotations

import numpy as np

from sundog.auditing.nearest_records import RecordDistance
from sundog.data.records import Records, concatenate
from sundog.evaluation.comparison import subsample
from sundog.evaluation.measure import Measure, measure_share

MOST = 5000  # records of each kind


def measure_similarity(synthetic: Records, members: Records, nonmembers: Records, rng: np.random.Generator) -> Measure:
    """Return the share of synthetic records that are nearer to a member than to a non-member; ties count half.

    Equal numbers of members and non-members are compared, so that ½ is what unseen data would give.
    """
    most = min(MOST, len(members), len(nonmembers))
    ours, theirs = (subsample(records, most, rng) for records in (members, nonmembers))
    chosen = subsample(synthetic, MOST, rng)
    distance = RecordDistance.fit(members.schema, concatenate([ours, theirs]))
    near, far = (distance.find_nearest(chosen, among) for among in (ours, theirs))
    return measure_share(float((near < far).sum() + (near == far).sum() / 2), len(chosen))
