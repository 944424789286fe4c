"""The certificate: the guarantee, what was spent on what, what was assumed public, and all of it in words.

Anybody can recompute it: it lists the events, and `recheck` composes them again.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sundog import notebook
from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.released import ReleasedModel
from sundog.privacy.accountant import METHODS, Method
from sundog.privacy.budget import (
    LARGEST_DELTA,
    LARGEST_EPSILON,
    LARGEST_MEANINGFUL_DELTA,
    LARGEST_MEANINGFUL_EPSILON,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    compute_calibrated_delta,
)
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.ledger import Ledger, merge_blocks
from sundog.privacy.noise import FAST, SECURE, SEEDED
from sundog.privacy.record_count import compute_count_epsilon, compute_fit_epsilon, is_count
from sundog.release.charge_costs import ChargeCost, compute_costs, format_number
from sundog.release.learned_parts import LearnedPart, find_unpaid_parts, list_learned_parts
from sundog.release.measured_marginals import (
    MOST_LISTED,
    ListedMarginal,
    compare_marginals,
    format_marginals,
    list_marginals,
)
from sundog.release.printable_text import Text
from sundog.untrusted_text import replace_unprintable

NOT_PRIVATE = "NOT PRIVATE: the noise came from a fixed seed, for tests; whoever knows the seed can subtract it"
NOT_REVIEWED = "NOT REVIEWED: the schema was drafted from the data; what it reveals is outside the guarantee"

# More than any fit has; a file with more is refused before anything is computed from it.
_MOST_CHARGES = 20_000
_MOST_TRAININGS = 256
_SAME = 1e-3  # the relative difference allowed between a figure and what the events add up to

Epsilon = Annotated[float, Field(ge=SMALLEST_EPSILON, le=LARGEST_EPSILON, allow_inf_nan=False)]
Delta = Annotated[float, Field(gt=SMALLEST_DELTA, lt=1, allow_inf_nan=False)]
Spent = Annotated[float, Field(ge=0, le=1e40, allow_inf_nan=False)]

_NOT_PROTECTED = """\
It does not hide what is true of the population as a whole, nor what the schema declares as public,
nor that a person could be a member if membership is known anyway. It says nothing about other
releases of the same data: add their budgets up (one ledger file shared between fits does that)."""


def _check_trainings(charges: list[Charge]) -> list[Charge]:
    kinds = {charge.event for charge in charges if isinstance(charge.event, SampledGaussian)}
    if len(kinds) > _MOST_TRAININGS:
        raise ValueError(f"has more than {_MOST_TRAININGS} different trainings")
    return charges


class LedgerHead(BaseModel):
    """The state of the ledger file when the release was made: see `sundog.privacy.ledger.Head`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ledger: Text | None  # None where the ledger was one of a development version, without an id
    lines: Annotated[int, Field(ge=1, le=10**12)]
    hash: Text


class SharedLedger(BaseModel):
    """What all releases from one ledger file had spent when this one was made."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    epsilon: Epsilon
    delta: Delta
    spent: Spent
    head: LedgerHead | None = None  # of a file


class Conditional(BaseModel):
    """The (ε, δ) of everything measured after the noisy number of records, given that number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    records: Annotated[int, Field(ge=-(10**18), le=10**18)]
    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON, allow_inf_nan=False)]
    delta: Delta


class Certificate(BaseModel):
    """The guarantee of one release, for people (`str`) and for machines (`to_dict`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    private: bool
    epsilon: Epsilon
    delta: Delta
    spent: dict[Method, Spent | None]  # None where an accountant cannot tell
    unit: Text | None
    cap: Annotated[int, Field(ge=1, le=10_000)]
    neighbours: Literal["add or remove one unit", "show or erase one unit's private values"]
    noise: Literal[
        "ChaCha20 and AES-256 keyed by the operating system",
        "ChaCha20 keyed by the operating system; on gradients the device's own generator, not cryptographic",
        "a fixed seed, for tests: NOT PRIVATE",
    ]
    charges: Annotated[list[Charge], Field(fail_fast=True, max_length=_MOST_CHARGES), AfterValidator(_check_trainings)]
    assumed_public: Annotated[list[Text], Field(fail_fast=True, max_length=100)]
    learned: Annotated[list[LearnedPart], Field(fail_fast=True, max_length=_MOST_CHARGES)] = []
    measured: Annotated[list[ListedMarginal], Field(fail_fast=True, max_length=MOST_LISTED)] = []
    conditional: Conditional | None = None  # where the count of records chose a smaller δ to calibrate to
    ledger: SharedLedger | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON values."""
        return self.model_dump()

    @classmethod
    def from_dict(cls, value: Any) -> Certificate:
        """Read a certificate; raise ReleaseError on anything else."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"])) or "certificate"
            raise ReleaseError(
                f"the certificate is malformed ({place}: {problem['msg']}); ask for a new copy"
            ) from None

    def recheck(self, schema: Schema, model: ReleasedModel | None = None) -> list[str]:
        """Return the inconsistencies within the certificate, and with the schema and the model."""
        problems = [] if self.private and self.noise in (SECURE, FAST) else [NOT_PRIVATE]
        if (self.unit, self.cap, self.neighbours) != (_name_unit(schema), schema.cap, describe_neighbours(schema)):
            problems.append("the certificate and the schema disagree about who is protected")
        if self.assumed_public != list_public_assumptions(schema, model):
            problems.append("what the certificate assumes public is not what the schema declares and the model used")
        problems += [f"no charge pays for the {part}" for part in self.find_unpaid_parts(schema)]
        if len(self.learned) > len(list_learned_parts(schema, counted=any(map(is_count, self.charges)))):
            problems.append("the certificate lists more learned parts than the schema has")
        problems += compare_marginals(self.measured, [] if model is None else model.list_measured(self.charges))
        return problems + self._check_promise() + self._check_figures() + self._check_ledger()

    def find_unpaid_parts(self, schema: Schema) -> list[str]:
        """Return the learned parts of a schema for which the certificate has or names no charge."""
        counted = any(map(is_count, self.charges))
        unnamed = [part.part for part in list_learned_parts(schema, counted=counted) if part not in self.learned]
        return list(dict.fromkeys([*unnamed, *find_unpaid_parts(schema, self.charges, counted=counted)]))

    def list_warnings(self) -> list[str]:
        """Return warnings that a reader should see even if everything adds up."""
        found = [line for line in self.assumed_public if line.startswith("NOT REVIEWED")]
        if self.epsilon > LARGEST_MEANINGFUL_EPSILON:
            found.append(
                f"ε = {self.epsilon:g} is above {LARGEST_MEANINGFUL_EPSILON:g}: it promises hardly any protection"
            )
        deltas = {"δ": self.delta, **({} if self.ledger is None else {"the shared ledger's δ": self.ledger.delta})}
        found += [
            f"{what} = {delta:g} is above {LARGEST_DELTA:g}: it would allow publishing one record in {1 / delta:,.0f}"
            for what, delta in deltas.items()
            if delta > LARGEST_DELTA
        ]
        return found

    @property
    def _calibrated(self) -> float:
        """The δ at which the charges after the count are added up."""
        return self.delta if self.conditional is None else self.conditional.delta

    def _check_promise(self) -> list[str]:
        """Return problems of the promise: it is meaningless, or its conditional part does not follow from the count."""
        problems = []
        if self.delta > LARGEST_MEANINGFUL_DELTA:
            problems.append(
                f"δ = {self.delta:g} promises nothing: publishing every record with that probability would keep it"
            )
        if self.conditional is None:
            return problems
        rest = self.epsilon - compute_count_epsilon(self.charges)
        if not any(map(is_count, self.charges)):
            problems.append("it refers to a count of records that no charge paid for")
        elif not math.isclose(self.conditional.epsilon, rest, rel_tol=1e-6) or not math.isclose(
            self.conditional.delta, compute_calibrated_delta(self.delta, self.conditional.records), rel_tol=1e-6
        ):
            problems.append("what it promises given the count of records does not follow from the count")
        return problems

    def _check_figures(self) -> list[str]:
        """Return the figures that the events do not add up to."""
        problems = []
        for method in METHODS:
            spent = compute_fit_epsilon(self.charges, delta=self._calibrated, method=method)
            if method == "pld" and spent > self.epsilon * (1 + 1e-9):
                problems.append(f"the events add up to ε = {spent:.4g}, above the claimed {self.epsilon:.4g}")
            if not _is_same_figure(spent, self.spent.get(method)):
                said = format_number(self.spent.get(method))
                problems.append(f"the events add up to ε = {spent:.4g} by {method}, but the certificate says {said}")
        return problems

    def _check_ledger(self) -> list[str]:
        """Return problems of the shared ledger: overspent, meaningless, or with less spent than by this release."""
        if self.ledger is None:
            return []
        problems = []
        if self.ledger.delta > LARGEST_MEANINGFUL_DELTA:
            problems.append(f"the shared ledger's δ = {self.ledger.delta:g} promises nothing")
        if self.ledger.spent > self.ledger.epsilon * (1 + 1e-9):
            problems.append(f"the shared ledger is overspent: ε = {self.ledger.spent:.4g} of {self.ledger.epsilon:g}")
        alone = compute_fit_epsilon(self.charges, delta=self.ledger.delta)
        if alone > self.ledger.spent * 1.01 + 1e-9:
            problems.append(
                f"the shared ledger says ε = {self.ledger.spent:.4g} was spent in all, and this release alone spent "
                f"{alone:.4g}"
            )
        if self.epsilon > self.ledger.epsilon * (1 + 1e-9):
            problems.append("it promises more than the shared ledger holds")
        return problems

    @property
    def who(self) -> str:
        """The privacy unit in words."""
        if self.unit is None:
            return "one record"
        records = "1 record" if self.cap == 1 else f"{self.cap} records"
        return f"one {self.unit} (at most {records} of each were used)"

    def compute_costs(self) -> list[ChargeCost]:
        """Return the charges in the order they were made, with what each would cost alone."""
        return compute_costs(self.charges, delta=self._calibrated)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text."""
        return notebook.build_preformatted(str(self))

    def __str__(self) -> str:
        head = [] if self.private else [NOT_PRIVATE, ""]
        return "\n".join(
            [
                *head,
                *self._format_promise(),
                "",
                *self._format_spent(),
                "",
                *self._format_assumptions(),
                "",
                _NOT_PROTECTED,
            ]
        )

    def _format_promise(self) -> list[str]:
        person, factor = self._name_person(), _format_factor(self.epsilon)
        return [
            "sundog certificate",
            f"  guarantee    (ε = {self.epsilon:g}, δ = {self.delta:.3g})-differential privacy",
            f"  protects     {self.who}; neighbouring datasets: {self.neighbours}",
            f"  noise        {self.noise}",
            *(f"  WARNING      {warning}" for warning in self.list_warnings()),
            "",
            f"In words: whatever anybody concludes from this release about {person}, they could have concluded",
            f"almost as well without that data: the odds change by at most a factor of e^ε = {factor},",
            f"except with probability δ (1 in {1 / self.delta:,.0f}).",
            *self._format_conditional(),
        ]

    def _format_conditional(self) -> list[str]:
        given = self.conditional
        if given is None or given.delta == self.delta:
            return []
        return [
            "",
            f"The noise was calibrated to a smaller δ. Given that the noisy number of records is {given.records:,},",
            f"everything else is (ε = {given.epsilon:.4g}, δ = {given.delta:.3g})-differentially private. This is a",
            "statement about that count; the guarantee above holds whatever the count turned out to be.",
        ]

    def _name_person(self) -> str:
        return "a record" if self.unit is None else f"one {self.unit}"

    def _format_spent(self) -> list[str]:
        spent = "   ".join(f"{method} {format_number(self.spent.get(method))}" for method in METHODS)
        lines = [f"Spent: ε at δ = {self._calibrated:.3g} by   {spent}   (pld is the claim)"]
        lines += [f"  {cost}" for cost in self.compute_costs()]
        if self.ledger is not None:
            of = f"{self.ledger.spent:.4g} of {self.ledger.epsilon:g}"
            lines.append(f"Shared ledger: ε = {of} spent in all (δ = {self.ledger.delta:.3g})")
        return lines + format_marginals(self.measured)

    def _format_assumptions(self) -> list[str]:
        learned = ["", "Learned within the budget:", *(f"  - {part}" for part in self.learned)] if self.learned else []
        return ["Assumed public:", *(f"  - {line}" for line in self.assumed_public), *learned]


def certify(
    ledger: Ledger,
    schema: Schema,
    *,
    shared: Ledger | None = None,
    model: ReleasedModel | None = None,
    delta: float | None = None,
    records: int | None = None,
) -> Certificate:
    """Return the certificate of everything charged to a run.

    Args:
        ledger: the run.
        schema: what was publicly known, and what was learned.
        shared: the ledger of all releases, if there is one.
        model: what was fitted, which says what else it assumes to be public, and what it measured.
        delta: the δ that was promised before any data was touched; the run's, unless that was lowered afterwards.
        records: the noisy number of records, if the run's δ was lowered to fit it.
    """
    charges = merge_blocks(ledger.charges)
    epsilon, calibrated = ledger.budget.epsilon, ledger.budget.delta
    private = ledger.private and (shared is None or shared.private)
    spent = {
        method: _drop_infinite(compute_fit_epsilon(charges, delta=calibrated, method=method)) for method in METHODS
    }
    rest = epsilon - compute_count_epsilon(charges)
    return Certificate(
        private=private,
        epsilon=epsilon,
        delta=calibrated if delta is None else delta,
        spent=spent,
        unit=_name_unit(schema),
        cap=schema.cap,
        neighbours=describe_neighbours(schema),
        noise=cast(Any, ledger.noise.description if private else SEEDED),
        charges=charges,
        assumed_public=list_public_assumptions(schema, model),
        learned=list_learned_parts(schema, counted=any(map(is_count, charges))),
        measured=list_marginals([] if model is None else model.list_measured(charges)),
        conditional=None if records is None else Conditional(records=records, epsilon=rest, delta=calibrated),
        ledger=None if shared is None else _make_shared_ledger(shared),
    )


def _make_shared_ledger(ledger: Ledger) -> SharedLedger:
    head = ledger.head
    return SharedLedger(
        epsilon=ledger.budget.epsilon,
        delta=ledger.budget.delta,
        spent=ledger.compute_spent(),
        head=None if head is None else LedgerHead(**asdict(head)),
    )


def describe_neighbours(schema: Schema) -> Literal["add or remove one unit", "show or erase one unit's private values"]:
    """Return the neighbouring relation: public columns have the same values in both datasets."""
    if any(column.public for column in schema.columns.values()):
        return "show or erase one unit's private values"
    return "add or remove one unit"


def _name_unit(schema: Schema) -> str | None:
    return None if schema.unit is None else replace_unprintable(schema.unit)


def list_public_assumptions(schema: Schema, model: ReleasedModel | None = None) -> list[str]:
    """List what the guarantee, and the model, assume to be public."""
    lines = ["the schema: names and types of columns, declared values, bounds and resolutions"]
    if not schema.reviewed:
        lines.append(NOT_REVIEWED)
    if schema.records is not None:
        lines.append(f"the number of records, declared as {schema.records:,}")
    if schema.rules:
        lines.append("the rules between columns that the schema declares, and that every record satisfies them")
    public = [name for name, column in schema.columns.items() if column.public]
    if public:
        names = replace_unprintable(", ".join(public))
        lines.append(f"every value of the columns marked public, and with them how many records there are: {names}")
    return lines if model is None else [*lines, *model.assumptions]


def _drop_infinite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _format_factor(epsilon: float) -> str:
    if epsilon > 50:
        return "more than a million million million: no protection at all"
    factor = math.exp(epsilon)
    return f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}"


def _is_same_figure(spent: float, claimed: float | None) -> bool:
    if claimed is None or not math.isfinite(spent):
        return claimed is None and not math.isfinite(spent)
    return abs(spent - claimed) <= _SAME * max(spent, 1e-6)
