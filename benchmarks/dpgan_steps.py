"""Steps that a budget allows, as in Table 7 of Zhang, Ji and Wang (2018): what the text claims, and what is so.

The text says that k groups of parameters, each with noise of its own multiplier σ, cost no more than one (Theorem 4.1),
and that they allow more iterations. But one record is in every group: together they are one Gaussian of multiplier
σ/√k. The rows count steps of the critic, four to an iteration of the text, by three accountants: `moments` is the kind
that the text names, `PLD` is what sundog claims. The rows ε say what the iterations of the text cost.

Without groups the standard accountants allow far more than the text does: its own accounting is stricter than that, and
not stated. In sundog groups share the noise, and a step costs what it does without them (docs/training.md).

python benchmarks/dpgan_steps.py [--quick] [--json FILE]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from report import Row, arguments, publish

from sundog.privacy.accountant import METHODS, Method, compute_epsilon
from sundog.privacy.calibration import find_most_steps, make_training_charges

DELTA = 1e-5
BATCH = 64
CRITIC_STEPS = 4  # in an iteration
NAMES: dict[Method, str] = {"pld": "PLD", "rdp": "RDP", "moments": "moments"}


@dataclass(frozen=True)
class Setting:
    """A line of Table 1, and what Table 7 claims for it.

    Args:
        name: of the dataset.
        records: that it has.
        epsilon: the budget.
        sigma: the noise multiplier of each group.
        groups: by which parameters are clustered.
        before: iterations without groups.
        after: iterations with them.
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
        """The chance of a record to be in a batch."""
        return BATCH / self.records

    def joint(self, groups: int) -> float:
        """Return the multiplier of so many groups together."""
        return self.sigma / math.sqrt(groups)


SETTINGS = [
    Setting("MNIST", 60_000, 4.0, 1.086, 5, 560, 780),
    Setting("CelebA", 200_000, 10.0, 0.543, 6, 2910, 4070),
    Setting("LSUN-L", 2_500_000, 10.0, 0.434, 7, 15_010, 19_300),
    Setting("LSUN-U", 2_500_000, 10.0, 0.434, 7, 24_630, 31_670),
]


def spent(setting: Setting, groups: int, steps: int, method: Method = "pld") -> float:
    """ε after so many steps."""
    plan = make_training_charges(noise_multiplier=setting.joint(groups), sample_rate=setting.sample_rate, steps=steps)
    return compute_epsilon(plan, delta=DELTA, method=method)


def allowed(setting: Setting, groups: int, method: Method) -> int:
    """Step within the budget, by one of the accountants."""
    if method == "pld":
        multiplier, rate = setting.joint(groups), setting.sample_rate
        return find_most_steps(noise_multiplier=multiplier, sample_rate=rate, epsilon=setting.epsilon, delta=DELTA)
    low, high = 0, 1
    while spent(setting, groups, high, method) <= setting.epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spent(setting, groups, middle, method) <= setting.epsilon else (low, middle)
    return low


def rows_of(setting: Setting) -> Iterator[Row]:
    """Yield one group, weights and biases apart, and the groups of the text."""
    for groups in (1, 2, setting.groups):
        iterations = setting.before if groups == 1 else setting.after
        claimed, name = CRITIC_STEPS * iterations, f"{setting.name} k={groups}"
        for method in METHODS:
            steps = allowed(setting, groups, method)
            yield Row(f"{name} steps, {NAMES[method]}", steps, "", f"text, {CRITIC_STEPS} × {iterations}", claimed)
        yield Row(f"{name} ε of these", spent(setting, groups, claimed), "", "text", setting.epsilon)


def main() -> None:
    options = arguments(__doc__ or "")
    settings = SETTINGS[:1] if options.quick else SETTINGS
    publish([row for setting in settings for row in rows_of(setting)], options)


if __name__ == "__main__":
    main()
