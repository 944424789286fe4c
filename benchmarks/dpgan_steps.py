"""The number of steps that a budget allows, and the claims of Table 7 of Zhang, Ji and Wang (2018).

The paper says that k groups of parameters, each with noise multiplier σ, cost no more than one (Theorem 4.1), and that
they allow more iterations. But one record is in every group: together they are one Gaussian with multiplier σ/√k. The
rows count steps of the critic, four for each iteration of the paper, by three accountants: `moments` is the kind that
the paper names, `PLD` is the claim of sundog. The rows ε give the cost of the paper's iterations.

Without groups the standard accountants allow far more steps than the paper: its own accounting is stricter, and is not
stated. In sundog the noise is distributed over the groups, and a step costs the same as without them
(docs/training.md).

python benchmarks/dpgan_steps.py [--quick] [--json FILE]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from report import Row, parse_arguments, publish

from sundog.privacy.accountant import METHODS, Method, compute_epsilon
from sundog.privacy.calibration import find_most_steps, make_training_charges

DELTA = 1e-5
BATCH = 64
CRITIC_STEPS = 4  # in an iteration
NAMES: dict[Method, str] = {"pld": "PLD", "rdp": "RDP", "moments": "moments"}


@dataclass(frozen=True)
class Setting:
    """A row of Table 1, and the claims of Table 7 for it.

    Args:
        name: the name of the dataset.
        records: the number of its records.
        epsilon: the budget.
        sigma: the noise multiplier of each group.
        groups: the number of clusters of parameters.
        before: iterations without groups.
        after: iterations with groups.
    """

    name: str
    records: int
    epsilon: float
    sigma: float
    groups: int
    before: int
    after: int

    @property
    def sample_rate(self) -> float:
        """The probability of a record to be in a batch."""
        return BATCH / self.records

    def joint(self, groups: int) -> float:
        """Return the joint noise multiplier of a number of groups."""
        return self.sigma / math.sqrt(groups)


SETTINGS = [
    Setting("MNIST", 60_000, 4.0, 1.086, 5, 560, 780),
    Setting("CelebA", 200_000, 10.0, 0.543, 6, 2910, 4070),
    Setting("LSUN-L", 2_500_000, 10.0, 0.434, 7, 15_010, 19_300),
    Setting("LSUN-U", 2_500_000, 10.0, 0.434, 7, 24_630, 31_670),
]


def account_steps(setting: Setting, groups: int, steps: int, method: Method = "pld") -> float:
    """Return ε after a number of steps."""
    plan = make_training_charges(noise_multiplier=setting.joint(groups), sample_rate=setting.sample_rate, steps=steps)
    return compute_epsilon(plan, delta=DELTA, method=method)


def count_allowed_steps(setting: Setting, groups: int, method: Method) -> int:
    """Return the number of steps within the budget, by one of the accountants."""
    if method == "pld":
        multiplier, rate = setting.joint(groups), setting.sample_rate
        return find_most_steps(noise_multiplier=multiplier, sample_rate=rate, epsilon=setting.epsilon, delta=DELTA)
    low, high = 0, 1
    while account_steps(setting, groups, high, method) <= setting.epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if account_steps(setting, groups, middle, method) <= setting.epsilon else (low, middle)
        )
    return low


def make_rows(setting: Setting) -> Iterator[Row]:
    """Yield the rows of one group, of weights and biases, and of the groups of the paper."""
    for groups in (1, 2, setting.groups):
        iterations = setting.before if groups == 1 else setting.after
        claimed, name = CRITIC_STEPS * iterations, f"{setting.name} k={groups}"
        for method in METHODS:
            steps = count_allowed_steps(setting, groups, method)
            yield Row(f"{name} steps, {NAMES[method]}", steps, "", f"text, {CRITIC_STEPS} × {iterations}", claimed)
        yield Row(f"{name} ε of these", account_steps(setting, groups, claimed), "", "text", setting.epsilon)


def main() -> None:
    options = parse_arguments(__doc__ or "")
    settings = SETTINGS[:1] if options.quick else SETTINGS
    publish([row for setting in settings for row in make_rows(setting)], options)


if __name__ == "__main__":
    main()
