"""What every generative model promises, as tests that a model's own test class inherits.

class TestIndependent(ModelContract):
    model = Independent
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tests.contracts.material import (
    ARRAYS,
    KINDS,
    SCALARS,
    arrays_of,
    constant_records,
    decode_records,
    join_records,
    random_records,
    same_samples,
    schema_of,
    to_lists,
)

from sundog.data.bin_refinement import Refinement
from sundog.data.columns import ScalarColumn, SetColumn
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, ReleaseError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.configuration import Configuration
from sundog.models.protocol import FitContext, Model, Plan, State
from sundog.models.registry import configure, read_model
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, DiscreteLaplace
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.release.certificate import certify
from sundog.release.release import Release

DELTA = 1e-6
_PLANS: dict[Any, Plan] = {}
_FITS: dict[Any, tuple[Model, Plan, Ledger]] = {}
every_kind = pytest.mark.parametrize("kind", KINDS)


class ModelContract:
    """Inherit it, say which model, and the suite runs."""

    model: ClassVar[type[Model]]
    epsilon: ClassVar[float] = 1.0
    settings: ClassVar[dict[str, Any]] = {}  # smaller than the defaults, where a model takes long

    # --- how the tests get at a model ---

    def configuration(self) -> Configuration:
        return configure(self.model.name, self.settings)

    def plan(self, schema: Schema, *, epsilon: float | None = None, already: Sequence[Charge] = ()) -> Plan:
        """A plan, kept for the next test with the same schema: calibration takes most of the time."""
        budget = Budget(self.epsilon if epsilon is None else epsilon, DELTA)
        key = (type(self), json.dumps(schema.to_dict()), budget, tuple(already))
        if key not in _PLANS:
            _PLANS[key] = self.model.plan(schema, budget, self.configuration(), already=already, records=100)
        return _PLANS[key]

    def fit(self, records: Records, *, repeatable: bool = False) -> tuple[Model, Plan, Ledger]:
        """A fit, kept for the next test with the same records: none of them changes it.

        Args:
            records: what to fit.
            repeatable: with the same noise each time, for what chance could spoil: noise may leave a single value.
        """
        codes = {name: to_lists(codes) for name, codes in records.codes.items()}
        key = (type(self), repeatable, json.dumps([records.schema.to_dict(), codes]))
        if key not in _FITS:
            plan = self.plan(records.schema)
            noise = NoiseSource.seeded(0) if repeatable else None
            ledger = Ledger(epsilon=self.epsilon, delta=DELTA, noise=noise)
            _FITS[key] = self.model.fit(records, plan, ledger, FitContext(seed=0)), plan, ledger
        return _FITS[key]

    def release(self, records: Records, *, repeatable: bool = False) -> Release:
        model, _, ledger = self.fit(records, repeatable=repeatable)
        schema = records.schema.model_copy(update={"records": 100})  # declared, as the plan takes it
        released = read_model(model.name, schema.modelled, model.state())
        return Release(schema, model, certify(ledger, schema, model=released))

    # --- what was learned was paid for ---

    @every_kind
    def test_its_own_charges_explain_all_it_knows(self, kind: str) -> None:
        release = self.release(random_records(schema_of(KINDS[kind]), 50))
        charges = release.certificate.charges
        assert release.document.model.find_unpaid(charges) == []
        assert release.document.model.find_unpaid(list(reversed(charges))) == []  # in whichever order
        assert release.verify() == []

    @every_kind
    def test_what_none_of_the_charges_paid_for_is_told(self, kind: str) -> None:
        release = self.release(random_records(schema_of(KINDS[kind]), 50))
        charges = release.certificate.charges
        assert release.document.model.find_unpaid([]) != []
        for number in range(len(charges)):
            unpaid = release.document.model.find_unpaid([*charges[:number], *charges[number + 1 :]])
            assert unpaid != []
            assert all("\n" not in what for what in unpaid)

    # --- the file, and seeds ---

    @every_kind
    def test_a_saved_release_samples_what_the_unsaved_one_does(self, kind: str, tmp_path: Path) -> None:
        release = self.release(random_records(schema_of(KINDS[kind]), 50))
        release.save(tmp_path / "a.sundog")
        loaded = Release.load(tmp_path / "a.sundog")
        assert loaded.schema == release.schema
        assert loaded.hash == release.hash
        assert loaded.records == release.records
        assert list(loaded.schema.columns) == list(release.schema.columns)
        assert same_samples(arrays_of(release, 40, seed=3), arrays_of(loaded, 40, seed=3))

    def test_state_is_plain_arrays_and_json(self) -> None:
        state = self.release(random_records(schema_of(KINDS["mix"]), 50)).model.state()
        assert json.loads(json.dumps(state.config, allow_nan=False)) == state.config
        assert all(type(tensor) is np.ndarray and tensor.dtype.kind in "biuf" for tensor in state.tensors.values())

    @every_kind
    def test_the_same_seed_gives_the_same_records_and_another_gives_others(self, kind: str) -> None:
        # With 256 levels: of few, rounding may leave one in each pixel, and then all images are the same.
        fine = {
            name: {**column, "levels": 256} if "levels" in column else column for name, column in KINDS[kind].items()
        }
        release = self.release(random_records(schema_of(fine), 100), repeatable=True)
        first = arrays_of(release, 200, seed=1)
        assert same_samples(first, arrays_of(release, 200, seed=1))
        assert not same_samples(first, arrays_of(release, 200, seed=2))
        assert not same_samples(arrays_of(release, 200), arrays_of(release, 200))  # without a seed, new ones every time

    @every_kind
    @pytest.mark.parametrize("n", [0, 1, 7])
    def test_as_many_records_as_were_asked_for(self, kind: str, n: int) -> None:
        schema = schema_of(KINDS[kind])
        model, _, _ = self.fit(random_records(schema, 50))
        codes = model.sample(n, np.random.default_rng(0), {})
        assert {name: codes[name].shape for name in codes} == {
            name: (n, *column.shape) for name, column in schema.columns.items()
        }

    # --- conditions ---

    @pytest.mark.parametrize("name", SCALARS)
    def test_a_condition_on_any_scalar_is_honoured(self, name: str) -> None:
        schema = schema_of({name: SCALARS[name], "other": SCALARS["integer"]})
        column = schema.columns[name]
        assert isinstance(column, ScalarColumn)
        release = self.release(random_records(schema, 100), repeatable=True)
        for code in {0, column.lattice_size // 2, column.size - 1}:
            (value,) = column.decode(np.array([code])).to_pylist()
            drawn = next(release.batches(30, seed=5, where={name: value}))
            assert drawn.codes[name].tolist() == [code] * 30, value
            assert len(set(drawn.codes["other"].tolist())) > 1
        values = column.decode(np.array([0, column.lattice_size // 2])).to_pylist()
        drawn = next(release.batches(30, seed=5, where={name: values}))
        assert set(drawn.codes[name].tolist()) <= {0, column.lattice_size // 2}

    def test_several_conditions_hold_together(self) -> None:
        release = self.release(random_records(schema_of(KINDS["mix"]), 50))
        where = {"categorical": "blue", "integer": None, "day": "2020-02-29"}
        drawn = arrays_of(release, 25, seed=1, where=where)
        assert drawn["categorical"].to_pylist() == ["blue"] * 25
        assert drawn["integer"].to_pylist() == [None] * 25
        assert {str(day.date()) for day in drawn["day"].to_pylist()} == {"2020-02-29"}

    @pytest.mark.parametrize("name", ARRAYS)
    def test_a_condition_on_an_array_is_refused(self, name: str) -> None:
        release = self.release(random_records(schema_of({name: ARRAYS[name]}), 50))
        with pytest.raises(DataError, match=name):
            release.sample(3, where={name: 1})

    # --- the budget ---

    @every_kind
    def test_spends_exactly_what_was_planned_and_nearly_all_that_is_allowed(self, kind: str) -> None:
        _, plan, ledger = self.fit(random_records(schema_of(KINDS[kind]), 50))
        assert merge_blocks(ledger.charges) == list(plan.charges)
        assert 0.998 * self.epsilon <= compute_epsilon(plan.charges, delta=DELTA) <= self.epsilon

    def test_plans_around_what_was_spent_before(self) -> None:
        schema = schema_of(KINDS["all_scalars"])
        already = (Charge(event=DiscreteLaplace(rate=0.3), purpose="before"),)
        plan = self.plan(schema, already=already)
        alone = self.plan(schema)
        assert 0.998 * self.epsilon <= compute_epsilon([*already, *plan.charges], delta=DELTA) <= self.epsilon
        assert compute_epsilon(plan.charges, delta=DELTA) < compute_epsilon(alone.charges, delta=DELTA)

    def test_more_budget_costs_more_and_less_costs_less(self) -> None:
        schema = schema_of(KINDS["mix"])
        spent = [compute_epsilon(self.plan(schema, epsilon=epsilon).charges, delta=DELTA) for epsilon in (0.1, 1, 8)]
        assert spent == sorted(spent)
        assert np.allclose(spent, [0.1, 1, 8], rtol=0.002)

    def test_nothing_is_charged_where_the_ledger_does_not_cover_the_plan(self) -> None:
        records = random_records(schema_of(KINDS["mix"]), 50)
        plan = self.plan(records.schema)
        small = Ledger(epsilon=0.9 * self.epsilon, delta=DELTA)
        with pytest.raises(BudgetExceededError, match="refused"):
            self.model.fit(records, plan, small, FitContext(seed=0))
        assert small.charges == ()

    def test_interrupted_after_a_charge_it_goes_on_and_charges_nothing_twice(self, tmp_path: Path) -> None:
        schema, out = schema_of(KINDS["mix"], records=100), tmp_path / "o.sundog"
        values = decode_records(random_records(schema, 50))
        synthesizer = Synthesizer(self.model.name, epsilon=self.epsilon, delta=DELTA, settings=self.settings)
        spend = Ledger.spend

        def stop(ledger: Ledger, *charges: Charge) -> None:
            spend(ledger, *charges)
            if not charges[0].purpose.startswith("bins of"):  # those of the model are meant
                raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "spend", stop)
            with pytest.raises(KeyboardInterrupt):
                synthesizer.fit(values, schema, out=out)
        release = synthesizer.fit(values, schema, out=out, resume=True).release_
        bins = Refinement.plan(schema, epsilon=self.epsilon, delta=DELTA).charges
        assert release.certificate.charges == [*bins, *self.plan(schema, already=bins).charges]
        assert release.verify() == []

    def test_the_plan_does_not_depend_on_the_data(self) -> None:
        schema = schema_of(KINDS["all_scalars"], records=100)
        charges = []
        for records in (random_records(schema, 10), constant_records(schema, 300, last=True)):
            values = decode_records(records)
            synthesizer = Synthesizer(self.model.name, epsilon=self.epsilon, delta=DELTA, settings=self.settings)
            charges.append(synthesizer.fit(values, schema).release_.certificate.charges)
        assert charges[0] == charges[1]

    # --- data at the edge ---

    @every_kind
    @pytest.mark.parametrize("count", [0, 1])
    def test_survives_no_record_and_one(self, kind: str, count: int) -> None:
        schema = schema_of(KINDS[kind])
        self._samples_well(random_records(schema, count))

    @every_kind
    @pytest.mark.parametrize("last", [False, True], ids=["first", "last or null"])
    def test_survives_the_same_record_over_and_over(self, kind: str, last: bool) -> None:
        self._samples_well(constant_records(schema_of(KINDS[kind]), 200, last=last))

    def test_survives_a_column_with_a_single_value(self) -> None:
        columns: dict[str, dict[str, Any]] = {
            "only": {"type": "categorical", "values": ["x"]},
            "point": {"type": "integer", "min": 3, "max": 3},
            "instant": {"type": "continuous", "min": 1.0, "max": 1.0},
        }
        self._samples_well(random_records(schema_of(columns), 20))

    def _samples_well(self, records: Records) -> None:
        release = self.release(records)
        assert release.verify() == []
        sample = arrays_of(release, 10, seed=0)
        assert len(encode(read(sample, records.schema), records.schema)) == 10

    @every_kind
    def test_samples_stay_in_the_declared_domain(self, kind: str) -> None:
        schema = schema_of(KINDS[kind])
        release = self.release(random_records(schema, 50))
        drawn = next(release.batches(300, seed=4))
        again = encode(read(arrays_of(release, 300, seed=4), schema), schema)
        for name, column in schema.columns.items():
            assert isinstance(column, SetColumn) or drawn.codes[name].dtype == column.dtype
            assert to_lists(again.codes[name]) == to_lists(drawn.codes[name])

    @every_kind
    def test_one_extreme_record_more_changes_no_shape_and_no_key(self, kind: str) -> None:
        schema = schema_of(KINDS[kind])
        few = constant_records(schema, 200)
        more = join_records(few, constant_records(schema, 1, last=True))
        state, larger = (self.fit(records)[0].state() for records in (few, more))
        assert {n: (t.shape, t.dtype) for n, t in state.tensors.items()} == {
            n: (t.shape, t.dtype) for n, t in larger.tensors.items()
        }
        assert _list_keys(state.config) == _list_keys(larger.config)

    # --- a state that is none ---

    def test_a_state_comes_back(self) -> None:
        schema = schema_of(KINDS["mix"])
        model, _, _ = self.fit(random_records(schema, 50))
        again = self.model.from_state(schema, model.state())
        codes, other = (m.sample(20, np.random.default_rng(1), {}) for m in (model, again))
        assert {name: to_lists(codes[name]) for name in codes} == {name: to_lists(other[name]) for name in other}
        assert again.state().config == model.state().config

    def test_a_model_does_not_share_weights_with_the_state_it_came_from(self) -> None:
        schema = schema_of(KINDS["mix"])
        state = self.fit(random_records(schema, 50))[0].state()
        copied = State({name: tensor.copy() for name, tensor in state.tensors.items()}, state.config)
        model = self.model.from_state(schema, copied)
        before = model.sample(20, np.random.default_rng(1), {})
        for tensor in copied.tensors.values():
            tensor[...] = 0
        after = model.sample(20, np.random.default_rng(1), {})
        assert {name: to_lists(before[name]) for name in before} == {name: to_lists(after[name]) for name in after}

    def test_reading_a_state_draws_no_random_numbers(self) -> None:
        schema = schema_of(KINDS["mix"])
        state = self.fit(random_records(schema, 50))[0].state()
        before = torch.get_rng_state()
        self.model.from_state(schema, state)
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.mark.parametrize("harm", ["gone", "shape", "axis", "empty", "dtype", "nan", "infinite"])
    def test_a_harmed_tensor_is_refused(self, harm: str) -> None:
        schema = schema_of(KINDS["mix"])
        state = self.fit(random_records(schema, 50))[0].state()
        for name, tensor in state.tensors.items():
            harmed = {**state.tensors, name: _damage(tensor, harm)}
            if harm == "gone":
                del harmed[name]
            with pytest.raises(ReleaseError):
                self.model.from_state(schema, State(harmed, state.config))

    def test_a_tensor_that_does_not_belong_is_refused(self) -> None:
        schema = schema_of(KINDS["mix"])
        state = self.fit(random_records(schema, 50))[0].state()
        with pytest.raises(ReleaseError):
            self.model.from_state(schema, State({**state.tensors, "stowaway": np.zeros(3)}, state.config))
        with pytest.raises(ReleaseError):
            self.model.from_state(schema, State({}, state.config))

    @pytest.mark.parametrize("value", [None, "text", [1], {"a": 1}, 1.5, True, -3, 10**30], ids=repr)
    def test_a_harmed_configuration_is_refused_or_harmless(self, value: Any) -> None:
        schema = schema_of(KINDS["mix"])
        state = self.fit(random_records(schema, 50))[0].state()
        for key in state.config:
            self._is_refused_or_harmless(schema, State(dict(state.tensors), {**state.config, key: value}))

    def test_a_configuration_without_one_of_its_keys_is_refused(self) -> None:
        schema = schema_of(KINDS["mix"])
        state = self.fit(random_records(schema, 50))[0].state()
        for key in state.config:
            rest = {name: value for name, value in state.config.items() if name != key}
            with pytest.raises(ReleaseError):
                self.model.from_state(schema, State(dict(state.tensors), rest))

    def _is_refused_or_harmless(self, schema: Schema, state: State) -> None:
        try:
            model = self.model.from_state(schema, state)
        except ReleaseError:
            return
        records = read_model(model.name, schema, state).records
        assert records is None or (type(records) is int and 0 <= records < 2**53)
        codes = model.sample(3, np.random.default_rng(0), {})
        for name, column in schema.columns.items():
            column.decode(codes[name])

    def test_a_state_of_another_schema_is_refused(self) -> None:
        state = self.fit(random_records(schema_of(KINDS["integer"]), 50))[0].state()
        wider = schema_of({"integer": {**SCALARS["integer"], "max": 6}})
        with pytest.raises(ReleaseError):
            self.model.from_state(wider, state)


def _damage(tensor: Any, harm: str) -> Any:
    if harm == "shape":
        return np.concatenate([tensor, tensor[..., :1]], axis=-1)
    if harm == "axis":
        return tensor[np.newaxis]
    if harm == "empty":
        return tensor[..., :0]
    if harm == "dtype":
        return tensor.astype(np.int8 if tensor.dtype.kind == "f" else np.float32)
    if harm in ("nan", "infinite") and tensor.dtype.kind == "f":
        harmed = tensor.copy()
        harmed.flat[0] = np.nan if harm == "nan" else np.inf
        return harmed
    return tensor[..., :0]


def _list_keys(value: Any) -> Any:
    """The keys of nested dicts, without what they hold."""
    return {key: _list_keys(inner) for key, inner in value.items()} if isinstance(value, dict) else None
