"""Noise that clients add in shares, so that no sum is exact, and what it costs."""

from sundog.tally.noise.contribution import Contribution
from sundog.tally.noise.noise_plan import NoisePlan, plan_noise
from sundog.tally.noise.shares import NoiseShares

__all__ = ["Contribution", "NoisePlan", "NoiseShares", "plan_noise"]
