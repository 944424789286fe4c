"""The certificate: what was promised, what was spent and on what, what was assumed, and what that means in words.

It can be recomputed by anybody: the events are in it, and `recheck` adds them up again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.privacy.accountant import METHODS, Method, epsilon_spent
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    printable,
)
from sundog.privacy.ledger import Ledger, summed
from sundog.privacy.noise import FAST, SECURE, SEEDED

NOT_PRIVATE = "NOT PRIVATE: the noise came from a fixed seed, for tests; whoever knows the seed can subtract it"

_NOT_PROTECTED = """\
It does not hide what is true of the population as a whole, nor what the schema declares as public, nor that a person
could be a member if membership is known anyway. It says nothing about other releases of the same data: add their
budgets up (one ledger file shared between fits does that)."""


def _is_printable(text: str) -> str:
    if not text.isprintable():  # it goes to the terminals of strangers
        raise ValueError("holds what cannot be printed")
    return text


Text = Annotated[str, AfterValidator(_is_printable)]


class SharedLedger(BaseModel):
    """What all releases from one ledger file had spent when this one was made."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    epsilon: float
    delta: float
    spent: float


class Certificate(BaseModel):
    """The guarantee of one release, for people (`str`) and for machines (`to_dict`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    private: bool
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=1e-50, lt=1)]
    spent: dict[Method, float | None]  # None where an accountant cannot tell
    unit: Text | None
    cap: int
    neighbours: Literal["add or remove one unit", "show or erase one unit's private values"]
    noise: Literal[
        "ChaCha20 and AES-256 keyed by the operating system",
        "ChaCha20 keyed by the operating system; on gradients the device's own generator, not cryptographic",
        "a fixed seed, for tests: NOT PRIVATE",
    ]
    charges: Annotated[list[Charge], Field(max_length=100_000)]
    assumed_public: list[Text]
    ledger: SharedLedger | None = None

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain JSON values."""
        return self.model_dump()

    @classmethod
    def from_dict(cls, value: Any) -> Certificate:
        """Reads a certificate; raises ReleaseError on anything else."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"])) or "certificate"
            raise ReleaseError(
                f"the certificate is malformed ({place}: {problem['msg']}); ask for a new copy"
            ) from None

    def recheck(self, schema: Schema, assumptions: Sequence[str] = ()) -> list[str]:
        """What does not add up, by itself or with the schema and the model it came with; empty when it is sound."""
        problems = [] if self.private and self.noise in (SECURE, FAST) else [NOT_PRIVATE]
        if (self.unit, self.cap, self.neighbours) != (_unit(schema), schema.cap, neighbours_of(schema)):
            problems.append("who is protected according to the certificate is not who is according to the schema")
        if self.assumed_public != [*assumed_public(schema), *assumptions]:
            problems.append("what the certificate takes for public is not what the schema declares and the model used")
        spent = epsilon_spent(self.charges, delta=self.delta)
        if spent > self.epsilon * (1 + 1e-9):
            problems.append(f"the events add up to ε = {spent:.4g}, above the claimed {self.epsilon:.4g}")
        claimed = self.spent.get("pld")
        if claimed is None or abs(spent - claimed) > 1e-3 * max(spent, 1e-6):
            problems.append(f"the events add up to ε = {spent:.4g}, but the certificate says {claimed}")
        return problems

    @property
    def who(self) -> str:
        """The privacy unit in words."""
        if self.unit is None:
            return "one record"
        records = "1 record" if self.cap == 1 else f"{self.cap} records"
        return f"one {self.unit} (at most {records} of each were used)"

    def shares(self) -> list[Share]:
        """The charges by purpose, in the order they were made, with what each would cost alone."""
        alone = [(charge, _alone(charge, self.delta)) for charge in self.charges]
        total = sum(cost for _, cost in alone if math.isfinite(cost)) or 1.0
        return [Share(charge.purpose, describe(charge), cost, cost / total) for charge, cost in alone]

    def __str__(self) -> str:
        head = [] if self.private else [NOT_PRIVATE, ""]
        return "\n".join([*head, *self._promise(), "", *self._spent(), "", *self._assumed(), "", _NOT_PROTECTED])

    def _promise(self) -> list[str]:
        return [
            "sundog certificate",
            f"  guarantee    (ε = {self.epsilon:g}, δ = {self.delta:.3g})-differential privacy",
            f"  protects     {self.who}; neighbouring datasets: {self.neighbours}",
            f"  noise        {self.noise}",
            "",
            f"In words: whatever anybody concludes from this release about {self._person()}, they could have concluded",
            f"almost as well without that data: the odds change by at most a factor of e^ε = {_factor(self.epsilon)},",
            f"except with probability δ (1 in {1 / self.delta:,.0f}).",
        ]

    def _person(self) -> str:
        return "a record" if self.unit is None else f"one {self.unit}"

    def _spent(self) -> list[str]:
        spent = "   ".join(f"{method} {_number(self.spent.get(method))}" for method in METHODS)
        lines = [f"Spent: ε at δ = {self.delta:.3g} by   {spent}   (pld is the claim)"]
        lines += [f"  {share}" for share in self.shares()]
        if self.ledger is not None:
            of = f"{self.ledger.spent:.4g} of {self.ledger.epsilon:g}"
            lines.append(f"Shared ledger: ε = {of} spent in all (δ = {self.ledger.delta:.3g})")
        return lines

    def _assumed(self) -> list[str]:
        return ["Assumed public:", *(f"  - {line}" for line in self.assumed_public)]


@dataclass(frozen=True)
class Share:
    """One line of what was spent: ε it would cost alone, and its part of the sum of those."""

    purpose: str
    mechanism: str
    epsilon_alone: float
    share: float

    def __str__(self) -> str:
        return (
            f"{self.purpose:<32.32} {self.mechanism:<44} alone ε = {_number(self.epsilon_alone):<8} {self.share:>4.0%}"
        )


def certify(
    ledger: Ledger, schema: Schema, *, shared: Ledger | None = None, assumptions: Sequence[str] = ()
) -> Certificate:
    """The certificate of everything charged to a run.

    Args:
        ledger: the run.
        schema: what was publicly known.
        shared: the ledger of all releases, if there is one.
        assumptions: what else was taken to be public.
    """
    charges = summed(ledger.charges)
    budget = ledger.budget
    private = ledger.private and (shared is None or shared.private)
    return Certificate(
        private=private,
        epsilon=budget.epsilon,
        delta=budget.delta,
        spent={method: _finite(epsilon_spent(charges, delta=budget.delta, method=method)) for method in METHODS},
        unit=_unit(schema),
        cap=schema.cap,
        neighbours=neighbours_of(schema),
        noise=cast(Any, ledger.noise.description if private else SEEDED),
        charges=charges,
        assumed_public=[*assumed_public(schema), *assumptions],
        ledger=None if shared is None else _as_shared(shared),
    )


def _as_shared(ledger: Ledger) -> SharedLedger:
    return SharedLedger(epsilon=ledger.budget.epsilon, delta=ledger.budget.delta, spent=ledger.spent())


def neighbours_of(schema: Schema) -> Literal["add or remove one unit", "show or erase one unit's private values"]:
    """Which datasets the guarantee makes hard to tell apart: where columns are public, their values stay in both."""
    if any(column.public for column in schema.columns.values()):
        return "show or erase one unit's private values"
    return "add or remove one unit"


def _unit(schema: Schema) -> str | None:
    return None if schema.unit is None else printable(schema.unit)


def assumed_public(schema: Schema) -> list[str]:
    """What the guarantee takes for granted."""
    lines = ["the schema: names and types of columns, declared values, bounds and resolutions"]
    if not schema.reviewed:
        lines.append("NOT REVIEWED: the schema was drafted from the data; what it reveals is outside the guarantee")
    if schema.records is not None:
        lines.append(f"the number of records, declared as {schema.records:,}")
    public = [name for name, column in schema.columns.items() if column.public]
    if public:
        names = printable(", ".join(public))
        lines.append(f"every value of the columns marked public, and with them how many records there are: {names}")
    learned = [name for name, column in schema.columns.items() if column.learn]
    if learned:
        lines.append(f"(not assumed but learned within the budget: what is said of {printable(', '.join(learned))})")
    return lines


def describe(charge: Charge) -> str:
    """A charge's mechanism in words.

    >>> describe(Charge(event=DiscreteGaussian(sigma=12.5), count=3, purpose="x"))
    'discrete Gaussian, σ = 12.5, × 3'
    """
    times = "" if charge.count == 1 else f", × {charge.count:,}"
    return _mechanism(charge.event) + times


def _mechanism(event: Event) -> str:
    match event:
        case Gaussian():
            return f"Gaussian, σ/Δ = {event.noise_multiplier:.4g}"
        case SampledGaussian():
            return f"Gaussian, σ/Δ = {event.noise_multiplier:.4g}, sampled at {event.sample_rate:.3g}"
        case DiscreteGaussian():
            return f"discrete Gaussian, σ = {event.sigma:.4g}"
        case DiscreteLaplace():
            return f"geometric, ε = {event.epsilon:.4g}"
        case Pure():
            return f"selection, ε = {event.epsilon:.4g}"
        case Failure():
            return f"stability threshold, δ = {event.delta:.3g}"


def _alone(charge: Charge, delta: float) -> float:
    """ε of the charge alone, by the quick accountant: it is for orientation, the claim is elsewhere."""
    if isinstance(charge.event, Failure):
        return 0.0
    if isinstance(charge.event, DiscreteLaplace | Pure):
        return charge.event.epsilon * charge.count
    return epsilon_spent([charge], delta=delta, method="rdp")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _factor(epsilon: float) -> str:
    if epsilon > 50:
        return "more than a million million million: no protection at all"
    factor = math.exp(epsilon)
    return f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}"
