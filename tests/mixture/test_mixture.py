"""Mixtures: the contract of every model, then components, their weights and their choice, and what is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tests.contracts.material import KINDS, constant_records, random_records, schema_of
from tests.contracts.model_contract import ModelContract

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, ReleaseError, SundogError
from sundog.mixture.clustering import ClusteringPlan
from sundog.mixture.mixture import Mixture, mixture_of
from sundog.models import get_model
from sundog.models.base import Model, State, Workshop
from sundog.models.independent import Independent
from sundog.models.vae import Vae
from sundog.privacy.accountant import epsilon_spent
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.certificate import certify
from sundog.release.release import Release
from sundog.synthesizer import Synthesizer

QUICK: dict[str, Any] = {"hidden": 6, "latent": 2, "batch": 50, "epochs": 2}
CLUSTERED: dict[str, Any] = {"dimension": 16, "iterations": 1}
BUDGET = Budget(1.0, 1e-6)

# Two kinds of records: few have a 0 on the left and a 1 on the right, or the other way round.
COLUMNS: dict[str, Any] = {
    **{f"left{i}": {"type": "boolean"} for i in range(4)},
    "side": {"type": "categorical", "values": ["left", "right"]},
    "shade": {"type": "integer", "min": 0, "max": 9},
}
TABLE = schema_of(COLUMNS, records=3000)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def two_kinds(n: int = 3000, seed: int = 0, share: float = 0.75) -> Records:
    """Three quarters are on the left, where everything is true and the shade is dark."""
    rng = np.random.default_rng(seed)
    left = rng.random(n) < share
    codes = {name: np.where(rng.random(n) < 0.97, left, ~left) for name in COLUMNS if name.startswith("left")}
    codes["side"] = ~left
    codes["shade"] = np.where(left, rng.integers(0, 3, n), rng.integers(7, 10, n))
    return Records(TABLE, {name: codes[name].astype(TABLE.columns[name].dtype) for name in COLUMNS}, n)


def values(records: Records) -> dict[str, Any]:
    return {name: column.decode(records.codes[name]) for name, column in records.schema.columns.items()}


def fitted(component: type[Model], epsilon: float = 20.0, **settings: Any) -> Mixture:
    kind = mixture_of(component)
    budget = Budget(epsilon, 1e-6)
    plan = kind.plan(
        TABLE, budget, already=(), records=3000, settings={**kind.defaults, **CLUSTERED, "dimension": 64, **settings}
    )
    ledger = Ledger(epsilon=epsilon, delta=1e-6, noise=NoiseSource.seeded(1))
    return kind.fit(two_kinds(), plan, ledger, Workshop(seed=1))


@cache
def independent() -> Mixture:
    return fitted(Independent)


@cache
def vaes() -> Mixture:
    return fitted(Vae, hidden=20, latent=2, batch=200, epochs=8)


def left_of(mixture: Mixture) -> int:
    """The number of the component of those on the left."""
    shares = [np.mean(mixture.sample(400, np.random.default_rng(0), {"cluster": c})["side"]) for c in (0, 1)]
    return int(np.argmin(shares))


# --- the contract ---


FEW = {"numbered_set", "mix", "categorical", "wide_integer", "image"}


def of_few_kinds(contract: type[ModelContract]) -> type[ModelContract]:
    """The same tests, with fewer kinds of records: components have contracts of their own, with all of them."""
    for name, test in vars(ModelContract).items():
        marks = [_with_few(mark) for mark in getattr(test, "pytestmark", ())]
        if isinstance(test, FunctionType) and name not in vars(contract):
            few: Any = FunctionType(test.__code__, test.__globals__, name, test.__defaults__, test.__closure__)
            few.__kwdefaults__, few.__annotations__, few.pytestmark = test.__kwdefaults__, test.__annotations__, marks
            setattr(contract, name, few)
    return contract


def _with_few(mark: pytest.Mark) -> pytest.Mark:
    if mark.name == "parametrize" and isinstance(mark.args[1], dict):
        names, kinds = mark.args
        few = FEW - {"categorical", "wide_integer", "image"} if kinds is KINDS else FEW
        return pytest.mark.parametrize(names, [kind for kind in kinds if kind in few]).mark
    return mark


@of_few_kinds
class MixtureContract(ModelContract):
    """What a model promises, of components that promise it: by name there are no mixtures, only by clusters."""

    epsilon: ClassVar[float] = 8.0  # so that some of fifty records are left of three clusters
    settings: ClassVar[dict[str, Any]] = {**CLUSTERED, "clusters": 3}

    def synthesizer(self, **options: Any) -> Synthesizer:
        kind: Any = self.model
        clusters = self.settings["clusters"]
        rest = {name: value for name, value in self.settings.items() if name != "clusters"}
        return Synthesizer(
            kind.component.name, epsilon=self.epsilon, delta=1e-6, clusters=clusters, settings=rest, **options
        )

    def test_interrupted_after_a_charge_it_goes_on_or_says_that_it_cannot(self, tmp_path: Path) -> None:
        schema, out = schema_of(KINDS["mix"], records=100), tmp_path / "o.sundog"
        data = values(random_records(schema, 50))
        spend = Ledger.spend

        def stop(ledger: Ledger, *charges: Charge) -> None:
            spend(ledger, *charges)
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "spend", stop)
            with pytest.raises(KeyboardInterrupt):
                self.synthesizer().fit(data, schema, out=out)
        if not self.model.resumes:
            with pytest.raises(BudgetExceededError, match="was lost when it was interrupted"):
                self.synthesizer().fit(data, schema, out=out, resume=True)
            return
        release = self.synthesizer().fit(data, schema, out=out, resume=True).release_
        assert release.certificate.charges == list(self.plan(schema).charges)
        assert release.verify() == []

    def test_the_plan_does_not_depend_on_the_data(self) -> None:
        schema = schema_of(KINDS["mix"], records=100)
        one, other = (values(constant_records(schema, n, last=n > 50)) for n in (3, 90))
        charges = [self.synthesizer().fit(data, schema).release_.certificate.charges for data in (one, other)]
        assert charges[0] == charges[1]


class TestOfIndependent(MixtureContract):
    model = mixture_of(Independent)


class TestOfVae(MixtureContract):
    model = mixture_of(Vae)
    settings: ClassVar[dict[str, Any]] = {**CLUSTERED, **QUICK, "clusters": 3}


# --- components and their weights ---


@pytest.mark.parametrize("mixture", [independent, vaes])
def test_similar_records_share_a_component(mixture: Any) -> None:
    found = mixture()
    left = left_of(found)
    for cluster, side in ((left, 0), (1 - left, 1)):
        drawn = found.sample(500, np.random.default_rng(1), {"cluster": cluster})
        assert np.mean(drawn["side"] == side) > 0.95
        assert np.mean((drawn["shade"] >= 5) == side) > 0.9
    assert found.weights[left] == pytest.approx(0.75, abs=0.03)


def test_weights_are_noisy_counts_and_no_exact_ones() -> None:
    kind = mixture_of(Independent)
    settings = {**kind.defaults, **CLUSTERED, "clusters": 4}
    plan = kind.plan(TABLE, BUDGET, already=(), records=3000, settings=settings)
    noise = ClusteringPlan(**plan.settings["clustering"]).counts_noise
    found = [kind.fit(two_kinds(), plan, Ledger(epsilon=1.0, delta=1e-6), Workshop(seed=1)) for _ in range(2)]
    for mixture in found:
        assert mixture.weights.sum() == pytest.approx(1)
        assert (mixture.weights > 0).all()
        assert mixture.records == 3000
    assert noise > 10
    assert not np.array_equal(found[0].weights, found[1].weights)


def test_components_are_drawn_in_proportion() -> None:
    mixture = independent()
    drawn = mixture.sample(20_000, np.random.default_rng(2), {})
    assert np.mean(drawn["side"] == 0) == pytest.approx(0.75, abs=0.03)
    dark = drawn["shade"] < 5
    assert np.mean(dark == (drawn["side"] == 0)) > 0.9  # which no single component of this kind could know
    assert np.corrcoef(drawn["side"][1:], drawn["side"][:-1])[0, 1] < 0.05  # and they are shuffled


def test_a_mixture_of_more_clusters_than_there_are_records() -> None:
    schema = schema_of(COLUMNS, records=5)
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clusters": 8}
    for model, settings in (("independent", {}), ("vae", QUICK)):
        data = values(two_kinds(5))
        release = Synthesizer(model, **options, settings={**CLUSTERED, **settings}).fit(data, schema).release_
        assert release.verify() == []
        assert len(release.sample(50)) == 50
        assert len(release.sample(5, where={"cluster": 7})) == 5


def test_one_cluster_is_the_plain_model() -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "seed": 1, "noise": NoiseSource.seeded(1)}
    release = Synthesizer("independent", clusters=1, **options).fit(values(two_kinds(50)), TABLE).release_
    assert isinstance(release.model, Independent)
    assert not any("clustering" in charge.purpose for charge in release.certificate.charges)
    with pytest.raises(DataError, match="there is no column 'cluster'"):
        release.sample(3, where={"cluster": 0})


# --- what it costs ---


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_the_clustering_has_its_share_and_the_components_have_the_rest(share: float) -> None:
    kind = mixture_of(Vae)
    settings = {**kind.defaults, **QUICK, **CLUSTERED, "clusters": 5, "clustering": share}
    plan = kind.plan(TABLE, BUDGET, already=(), records=3000, settings=settings)
    clustering = [charge for charge in plan.charges if charge.purpose.startswith("clustering")]
    other = [charge for charge in plan.charges if charge not in clustering]
    assert len(clustering) == 4
    assert 0.998 < epsilon_spent(plan.charges, delta=1e-6) <= 1.0
    spent = epsilon_spent(clustering, delta=1e-6)
    assert 0.5 * share**0.5 < spent < 1.5 * share**0.5
    assert epsilon_spent(other, delta=1e-6) < 1.0


@pytest.mark.parametrize("clusters", [2, 9])
@pytest.mark.parametrize("component", [Independent, Vae])
def test_it_costs_the_same_however_many_components_there_are(component: type[Model], clusters: int) -> None:
    kind = mixture_of(component)
    quick = QUICK if component is Vae else {}
    settings = {**kind.defaults, **quick, **CLUSTERED, "clusters": clusters}
    plan = kind.plan(TABLE, BUDGET, already=(), records=100, settings=settings)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    mixture = kind.fit(two_kinds(100), plan, ledger, Workshop(seed=1))
    assert len(mixture.components) == clusters
    release = Release(TABLE, mixture, certify(ledger, TABLE))
    assert release.certificate.charges == list(plan.charges)
    assert release.verify() == []


def test_a_public_column_is_private_within_a_cluster() -> None:
    """In which cluster a record is says something of its other columns, so nothing exact may be said of a cluster."""
    columns = {**COLUMNS, "side": {**COLUMNS["side"], "public": True}}
    schema = schema_of(columns, records=3000)
    records = Records(schema, two_kinds().codes, 3000)
    kind = mixture_of(Independent)
    settings = {**kind.defaults, **CLUSTERED}
    plan = kind.plan(schema, BUDGET, already=(), records=3000, settings=settings)
    assert "marginal of side" in [charge.purpose for charge in plan.charges]
    mixtures = [kind.fit(records, plan, Ledger(epsilon=1.0, delta=1e-6), Workshop(seed=1)) for _ in range(2)]
    component: Any = mixtures[0].components[0]
    counts = component.marginals["side"] * component.records
    assert not np.allclose(counts, np.rint(counts), atol=1e-6) or component.records != mixtures[1].components[0].records
    again = kind.from_state(schema, mixtures[0].state())
    charges = [charge for charge in plan.charges if charge.purpose != "marginal of side"]
    for mixture in (mixtures[0], again):
        assert mixture.unexplained(plan.charges) == []
        assert mixture.unexplained(charges) == ["marginal of 'side'"]


def test_what_public_records_began_need_not_be_paid_for() -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clusters": 2, "settings": CLUSTERED}
    public = values(two_kinds(200, seed=5))
    release = Synthesizer("independent", public=public, **options).fit(values(two_kinds(300)), TABLE).release_
    assert release.verify() == []
    purposes = {charge.purpose for charge in release.certificate.charges}
    assert not {"clustering: kernel width", "clustering: space"} & purposes
    state = release.model.state()
    lying = Mixture.from_state(TABLE, State(state.tensors, {**state.config, "public": False}))
    assert lying.unexplained(release.certificate.charges) == ["clustering: kernel width", "clustering: space"]


# --- conditions ---


@pytest.mark.parametrize("mixture", [independent, vaes])
@pytest.mark.parametrize(("side", "share"), [(0, 0.75), (1, 0.25)])
def test_conditions_choose_components_as_bayes_would(mixture: Any, side: int, share: float) -> None:
    found = mixture()
    rng = np.random.default_rng(3)
    assert np.exp(found.log_evidence({"side": side}, rng)) == pytest.approx(share, abs=0.04)
    chances = found._chances({"side": side}, rng)
    left = left_of(found)
    assert chances[left if side == 0 else 1 - left] > 0.95
    drawn = found.sample(2000, np.random.default_rng(4), {"side": side})
    assert set(drawn["side"].tolist()) == {side}
    assert np.mean((drawn["shade"] >= 5) == side) > 0.9


def test_the_chances_of_components_are_those_of_the_joint_distribution() -> None:
    """Against a slow count of how often a condition holds in each component."""
    mixture = independent()
    chances = mixture._chances({"left0": 1, "shade": 2}, np.random.default_rng(0))
    joint = []
    for cluster, weight in enumerate(mixture.weights):
        component: Any = mixture.components[cluster]
        joint.append(weight * component.marginals["left0"][1] * component.marginals["shade"][2])
    assert chances == pytest.approx(np.array(joint) / sum(joint), abs=1e-9)
    evidence = mixture.log_evidence({"left0": 1, "shade": 2}, np.random.default_rng(0))
    assert np.exp(evidence) == pytest.approx(sum(joint))
    inside = mixture.log_evidence({"cluster": 1, "left0": 1, "shade": 2}, np.random.default_rng(0))
    assert np.exp(inside) == pytest.approx(joint[1])


@pytest.mark.parametrize("mixture", [independent, vaes])
def test_a_cluster_and_another_condition_hold_together(mixture: Any) -> None:
    found = mixture()
    left = left_of(found)
    drawn = found.sample(300, np.random.default_rng(5), {"cluster": left, "side": 1})
    assert set(drawn["side"].tolist()) == {1}
    assert np.mean(drawn["shade"] < 5) > 0.5  # those on the left, though few of them say so


def _release() -> Release:
    return Release(TABLE, independent(), certify(Ledger(epsilon=1.0, delta=1e-6), TABLE))


@pytest.mark.parametrize("cluster", [0, "0", " 1 ", np.int64(1)], ids=repr)
def test_a_cluster_is_a_number(cluster: Any) -> None:
    assert len(_release().sample(7, where={"cluster": cluster, "side": "left"})) == 7


@pytest.mark.parametrize(
    "cluster",
    [2, -1, "two", "", None, 1.0, 0.5, True, float("nan"), float("inf"), "1_0", "٠", "9" * 5000, [0], 10**30],
    ids=lambda value: repr(value)[:12],
)
def test_a_cluster_that_is_none_is_refused_in_one_line(cluster: Any) -> None:
    with pytest.raises(DataError, match=r"where: 'cluster' is a number from 0 to 1, not ") as error:
        _release().sample(7, where={"cluster": cluster})
    assert len(str(error.value).splitlines()) == 1


# --- what is refused ---


def test_a_column_of_that_name_is_refused_before_anything_is_spent() -> None:
    schema = schema_of({**COLUMNS, "cluster": {"type": "boolean"}}, records=100)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    data = {**values(two_kinds(100)), "cluster": np.zeros(100, bool)}
    with pytest.raises(SundogError, match=r"has a column 'cluster'.*rename it"):
        Synthesizer("independent", epsilon=1.0, clusters=2, ledger=ledger).fit(data, schema)
    assert ledger.charges == ()


def test_people_with_several_records_are_refused_before_anything_is_spent() -> None:
    schema = schema_of(COLUMNS, unit="person", cap=3, records=100)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    data = {**values(two_kinds(100)), "person": np.arange(100)}
    with pytest.raises(SundogError, match="up to 3 records here, which may be in different clusters"):
        Synthesizer("independent", epsilon=1.0, clusters=2, ledger=ledger).fit(data, schema)
    assert ledger.charges == ()
    one = schema_of(COLUMNS, unit="person", records=100)
    release = Synthesizer("independent", epsilon=1.0, clusters=2, settings=CLUSTERED).fit(data, one).release_
    assert release.verify() == []


@pytest.mark.parametrize("clusters", [0, -3, 2.5, "3", None, 10_001, 10**30], ids=repr)
def test_a_number_of_clusters_that_is_none_is_refused(clusters: Any) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(SundogError, match="clusters must be a whole number from 2 to 10000"):
        Synthesizer("independent", epsilon=1.0, clusters=clusters, ledger=ledger).fit(values(two_kinds(9)), TABLE)
    assert ledger.charges == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clustering", 0),
        ("clustering", 1),
        ("clustering", True),
        ("clustering", "much"),
        ("kernel", "linear"),
        ("dimension", 1),
        ("iterations", 0),
        ("hidden", 0),
        ("nonsense", 1),
    ],
)
def test_settings_that_are_none_are_refused(name: str, value: Any) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(SundogError, match=f"setting '{name}'"):
        Synthesizer("vae", epsilon=1.0, clusters=2, ledger=ledger, settings={name: value}).fit(
            values(two_kinds(9)), TABLE
        )
    assert ledger.charges == ()


@pytest.mark.parametrize("clusters", [1, 3])
def test_a_mixture_is_of_something_that_is_no_mixture(clusters: int) -> None:
    with pytest.raises(SundogError, match="say of what"):
        Synthesizer("mixture", epsilon=1.0, clusters=clusters).fit(values(two_kinds(9)), TABLE)


def test_another_model_does_not_go_on_with_an_interrupted_mixture(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clusters": 2, "settings": CLUSTERED}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vae, "fit_parts", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            Synthesizer("vae", **options).fit(values(two_kinds(50)), TABLE, out=tmp_path / "o.sundog")
    with pytest.raises(SundogError, match="the interrupted fit had another model"):
        Synthesizer("independent", **options).fit(values(two_kinds(50)), TABLE, out=tmp_path / "o.sundog", resume=True)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


# --- a state that is none ---


def _state() -> State:
    return independent().state()


def _refused(schema: Schema, config: dict[str, Any], tensors: dict[str, Any]) -> None:
    with pytest.raises(ReleaseError):
        Mixture.from_state(schema, State(tensors, config))


@pytest.mark.parametrize(
    "config",
    [
        {"of": "mixture"},
        {"of": "nonsense"},
        {"of": "auto"},
        {"of": "vae"},
        {"of": ["independent"]},
        {"of": None},
        {"public": 0},
        {"public": None},
        {"records": 0},
        {"records": True},
        {"records": 10**12},
        {"components": []},
        {"components": {}},
        {"components": [{"records": 5}]},
        {"components": [{"records": 5}] * 3},
        {"components": [{"records": 5}] * 10_001},
        {"components": [{"records": 5}, None]},
        {"components": [{"records": 5}, {"records": -5}]},
        {"components": [{"records": 5}, {"records": 5, "more": 1}]},
        {"components": [{"records": 5}, {"of": "independent", "records": 5, "components": []}]},
        {"more": 1},
    ],
    ids=lambda config: str(config)[:60],
)
def test_a_configuration_that_is_none_is_refused(config: dict[str, Any]) -> None:
    state = _state()
    _refused(TABLE, {**state.config, **config}, state.tensors)


@pytest.mark.parametrize(
    "weights",
    [
        np.array([0.5, np.nan]),
        np.array([np.inf, 0.5]),
        np.array([1.5, -0.5]),
        np.array([0.6, 0.6]),
        np.array([0.0, 0.0]),
        np.array([1.0]),
        np.array([0.3, 0.3, 0.4]),
        np.array([[0.5, 0.5]]),
        np.array([0.5, 0.5], np.float32),
        np.array([1, 0]),
        np.array(1.0),
        np.array([1e308, 1e308]),
    ],
    ids=str,
)
def test_weights_that_are_none_are_refused(weights: Any) -> None:
    state = _state()
    with np.errstate(over="ignore"):
        _refused(TABLE, state.config, {**state.tensors, "weights": weights})


def test_arrays_of_more_or_fewer_components_are_refused() -> None:
    state = _state()
    for name, tensor in state.tensors.items():
        for harmed in (tensor[:1], np.concatenate([tensor, tensor]), tensor[0], np.float64(1.0)):
            _refused(TABLE, state.config, {**state.tensors, name: np.asarray(harmed)})


@pytest.mark.parametrize("weights", [[0.0, 1.0], [1.0, 0.0], [0.5 + 4e-7, 0.5 + 4e-7], [1e-300, 1.0]], ids=str)
def test_odd_weights_draw_records_all_the_same(weights: list[float]) -> None:
    state = _state()
    mixture = Mixture.from_state(TABLE, State({**state.tensors, "weights": np.array(weights)}, state.config))
    rng = np.random.default_rng(0)
    for where in ({}, {"side": 1}, {"cluster": 0}, {"cluster": 0, "side": 1}):
        assert len(mixture.sample(20, rng, where)["side"]) == 20
    assert mixture.log_evidence({"side": 1}, rng) < 0


def test_weights_that_add_up_to_a_little_more_than_one_draw_records_too() -> None:
    state = _state()
    tensors = {name: np.concatenate([tensor, tensor[:1]]) for name, tensor in state.tensors.items()}
    tensors["weights"] = np.array([0.5 + 4e-7, 0.5 + 4e-7, 0.0])
    config = {**state.config, "components": [*state.config["components"], state.config["components"][0]]}
    mixture = Mixture.from_state(TABLE, State(tensors, config))
    assert len(mixture.sample(20, np.random.default_rng(0), {})["side"]) == 20


def test_a_mixture_comes_back_from_its_file_as_what_it_is(tmp_path: Path) -> None:
    for mixture in (independent(), vaes()):
        release = Release(TABLE, mixture, certify(Ledger(epsilon=1.0, delta=1e-6), TABLE))
        release.save(tmp_path / "o.sundog")
        loaded = Release.load(tmp_path / "o.sundog")
        assert isinstance(loaded.model, Mixture)
        assert get_model("mixture") is Mixture
        assert [type(each) for each in loaded.model.components] == [type(each) for each in mixture.components]
        for where in ({}, {"cluster": 1}, {"side": "right"}, {"cluster": 0, "side": "right"}):
            one, other = (r.sample(40, seed=1, where=where) for r in (release, loaded))
            assert one.equals(other)  # type: ignore[union-attr, arg-type]
