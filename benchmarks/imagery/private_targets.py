"""Our own GAN, with differential privacy and without noise, under the same attacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from dpgan.series import Silence
from numpy.typing import NDArray

import sundog
from imagery.experiments import Sizing, keep_samples
from imagery.image_subsets import Images, load_images
from imagery.outcomes import Outcome, measure_accuracy
from sundog.auditing.membership_measures import measure_exactly, trace_rates
from sundog.auditing.tradeoff_curve import TradeoffCurve, compute_tradeoff_curve
from sundog.models.gan.saved_critic import Critic
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, SampledGaussian

DELTA = 1e-5
BATCH = 64
UNCLIPPED = 1e6
SAMPLES = 32_000  # for black-box attacks
AT_CURVE, PROVEN = "TPR nearest the curve", "ε proven"


@dataclass(frozen=True)
class PrivateTarget:
    """Fit `gan`, and score candidates by the critic that the curator keeps.

    Args:
        data: LFW or CIFAR-10.
        epsilon: of the fit; None if `noise` says it, or if there is none.
        noise: the noise multiplier of its steps; 0 for a fit without noise and clipping.
        epochs: of its training.
        members: how many images are fitted.
        others: how many are not.
        sampled: whether samples are kept for other attacks.
    """

    data: str
    epsilon: float | None = None
    noise: float = 0.0
    epochs: int = 100
    members: int = 1323
    others: int = 11_910
    sampled: bool = False
    source: None = None

    @property
    def name(self) -> str:
        """What it is called in the table."""
        promise = f"ε={self.epsilon:g}" if self.epsilon else f"σ={self.noise:g}" if self.noise else "no noise"
        return f"our gan, {self.data} {self.members}+{self.others}, {self.epochs} epochs, {promise}"

    def run(self, sizing: Sizing, report: Callable[[Outcome], None]) -> Outcome:  # noqa: ARG002
        """Fit and measure."""
        start, images = time.perf_counter(), self.load(sizing)
        epochs = sizing.cut(self.epochs, 1)
        synth = self.make_synthesizer(len(images.members[images.members]), epochs, sizing)
        release = synth.fit(images.pixels[images.members], images.schema).release_
        if synth.private_ is None:
            raise RuntimeError("the fit kept no critic")
        critic = Critic(release.schema, synth.private_)
        scores = critic.score(images.to_records(images.pixels))
        accuracy, found = measure_accuracy(scores, images.members), {}
        if self.is_private:
            curve = compute_tradeoff_curve(release.certificate.charges)
            found[AT_CURVE] = find_nearest(scores, images.members, curve)
            found[PROVEN] = (accuracy.epsilon, release.certificate.epsilon)
        if self.sampled:
            made = release.sample(sizing.cut(SAMPLES, 100), seed=0, as_="arrays")["image"]
            keep_samples(sizing, self.name, np.asarray(made, np.uint8))
        return Outcome(accuracy, {}, time.perf_counter() - start, complete=True, extra=found)

    @property
    def training(self) -> PrivateTarget:
        """The experiment that trains it, and keeps its samples."""
        return self

    @property
    def is_private(self) -> bool:
        """Whether there is noise."""
        return self.epsilon is not None or self.noise > 0

    def load(self, sizing: Sizing) -> Images:
        """Return members and others."""
        members, others = (sizing.cut(count, 120) for count in (self.members, self.others))
        return load_images(self.data, members / (members + others), 0, members + others)

    def make_synthesizer(self, count: int, epochs: int, sizing: Sizing) -> sundog.Synthesizer:
        """Return a fit of this many records."""
        settings: dict[str, float] = {"epochs": epochs, "batch": BATCH, "hidden": 4 * sizing.channels}
        if not self.is_private:
            settings["clip"] = UNCLIPPED
        return sundog.Synthesizer(
            model="gan",
            epsilon=self.choose_epsilon(count, epochs),
            delta=DELTA,
            seed=0,
            device=sizing.device,
            settings=settings,
            noise=None if self.is_private else Silence(),
        )

    def choose_epsilon(self, count: int, epochs: int) -> float:
        """Return ε: that of the steps alone if σ is given, so that σ is slightly larger in the fit."""
        if not self.noise:
            return self.epsilon or 10.0
        event = SampledGaussian(noise_multiplier=self.noise, sample_rate=BATCH / count)
        steps = round(epochs * count / BATCH)
        return compute_epsilon([Charge(event=event, count=steps, purpose="training")], delta=DELTA)


def find_nearest(scores: NDArray[np.float64], members: NDArray[np.bool_], curve: TradeoffCurve) -> tuple[float, float]:
    """Return the true positive rate where it comes nearest to the curve, and what the curve allows there.

    The rate is the lower end of its 95% interval, and the curve is read at the upper end of that of the false positive
    rate. Of 20 thresholds the worst is shown, and the intervals are those of one.
    """
    positives, negatives, _ = trace_rates(scores, members)
    tried = np.unique(np.geomspace(1, len(positives) - 1, 20).astype(int))
    found = []
    for place in tried:
        true = measure_exactly(int(positives[place]), int(positives[-1]))
        false = measure_exactly(int(negatives[place]), int(negatives[-1]))
        allowed = 1 - float(curve(np.array([false.high]))[0])
        found.append((true.low - allowed, true.low, allowed))
    _, rate, allowed = max(found)
    return rate, allowed
