"""Privacy events: immutable descriptions of what a mechanism did, which an accountant reads.

An event says nothing about the data and nothing about ε: those are the accountant's conclusions. Events go into ledgers
and certificates as JSON, so their meaning may never change; a new meaning is a new event.

All events are for neighbours that differ by adding or removing one unit (a record, or a person whose contributions
are capped), scaled to sensitivity one unless a field says otherwise.

Every number has bounds: wide enough for any budget from ε = 1e-4 to 1e9, and narrow enough that no sum, square or
exponential of them over- or underflows, even if they are read from a hostile file.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from sundog.untrusted_text import to_one_line

LARGEST_LOSS = 1e10  # ε of one event
MOST_TIMES = 10**12  # that one event happens
LONGEST_PURPOSE = 200  # characters

Noise = Annotated[float, Field(ge=1e-12, le=1e15, allow_inf_nan=False)]
Loss = Annotated[float, Field(ge=1e-15, le=LARGEST_LOSS, allow_inf_nan=False)]


def _refuse_tiny_rate(rate: float) -> float:
    if 0 < rate < 1e-15:
        raise ValueError("sample_rate must be 0, or between 1e-15 and 1")
    return rate


SampleRate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(_refuse_tiny_rate)]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain JSON values."""
        return self.model_dump()


class Gaussian(_Event):
    """Gaussian noise of standard deviation `noise_multiplier` × the L2 sensitivity, on a vector of any length.

    >>> Gaussian(noise_multiplier=2.0).to_dict()
    {'kind': 'gaussian', 'noise_multiplier': 2.0}
    """

    kind: Literal["gaussian"] = "gaussian"
    noise_multiplier: Noise


class SampledGaussian(_Event):
    """A Gaussian sum over a Poisson sample: each unit is in with probability `sample_rate`, independently."""

    kind: Literal["sampled_gaussian"] = "sampled_gaussian"
    noise_multiplier: Noise
    sample_rate: SampleRate


class DiscreteGaussian(_Event):
    """Discrete Gaussian noise of parameter `sigma` on one integer that a unit changes by at most one."""

    kind: Literal["discrete_gaussian"] = "discrete_gaussian"
    sigma: Noise


class DiscreteLaplace(_Event):
    """Two-sided geometric noise, P(k) ∝ exp(−rate·|k|), on one integer that a unit changes by at most `sensitivity`."""

    kind: Literal["discrete_laplace"] = "discrete_laplace"
    rate: Loss
    sensitivity: Annotated[int, Field(ge=1, le=10**9)] = 1

    @model_validator(mode="after")
    def _check_bound(self) -> Self:
        if self.epsilon > LARGEST_LOSS:
            raise ValueError(f"rate × sensitivity must be at most {LARGEST_LOSS:g}")
        return self

    @property
    def epsilon(self) -> float:
        """The ε of the mechanism, at δ = 0."""
        return self.rate * self.sensitivity


class Skellam(_Event):
    """Skellam noise of variance sigma² on each of some integers, of which a unit changes some.

    The absolute changes add up to at most `l1`, and their squares to at most `l2_squared`: by default, one integer
    changes by one.
    """

    kind: Literal["skellam"] = "skellam"
    sigma: Noise
    l1: Annotated[int, Field(ge=1, le=10**9)] = 1
    l2_squared: Annotated[int, Field(ge=1, le=10**18)] = 1

    @model_validator(mode="after")
    def _check_norms(self) -> Self:
        if not self.l1 <= self.l2_squared <= self.l1**2:  # as for all integers
            raise ValueError("l2_squared must be between l1 and its square")
        return self


class Pure(_Event):
    """Any mechanism that is ε-DP with δ = 0, accounted as the worst of them: selections, noisy keys."""

    kind: Literal["pure"] = "pure"
    epsilon: Loss


class Failure(_Event):
    """With probability `delta` anything may have been revealed (a threshold was exceeded, a table was rounded)."""

    kind: Literal["failure"] = "failure"
    delta: Annotated[float, Field(ge=1e-60, lt=1, allow_inf_nan=False)]


Event = Annotated[
    Gaussian | SampledGaussian | DiscreteGaussian | DiscreteLaplace | Skellam | Pure | Failure,
    Field(discriminator="kind"),
]


def normalize_purpose(text: Any) -> Any:
    r"""Return a purpose as charges keep it: one printable line, of which names of columns are a part.

    >>> normalize_purpose("range of\nage")
    'range of age'
    """
    return to_one_line(text)[:LONGEST_PURPOSE] if isinstance(text, str) else text


class Charge(BaseModel):
    """An event, how many times it happens, and what it is for: one line of a plan, a ledger or a certificate.

    >>> Charge(event=Gaussian(noise_multiplier=4.0), count=20, purpose="k-means").count
    20
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    event: Event
    count: Annotated[int, Field(ge=1, le=MOST_TIMES)] = 1
    purpose: Annotated[str, Field(min_length=1, max_length=LONGEST_PURPOSE), BeforeValidator(normalize_purpose)]
