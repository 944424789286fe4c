"""Mixtures: components and their weights, what they cost, how conditions choose among them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contracts.material import decode_records, schema_of
from tests.mixture.two_kinds import (
    BUDGET,
    CLUSTERED,
    COLUMNS,
    QUICK,
    TABLE,
    configure_mixture,
    fit_independent,
    fit_vaes,
    left_of,
    two_kinds,
)

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.errors import DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.mixture.mixture import Mixture
from sundog.mixture.released import ReleasedMixture
from sundog.models.independent.independent import Independent
from sundog.models.protocol import FitContext, State
from sundog.models.registry import MODELS, configure, get_configuration, get_model
from sundog.models.vae.vae import Vae
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.certificate import certify
from sundog.release.release import Release

every_mixture = pytest.mark.parametrize("mixture", [fit_independent, fit_vaes], ids=["independent", "vaes"])

# --- components and their weights ---


@every_mixture
def test_similar_records_share_a_component(mixture: Any) -> None:
    found = mixture()
    left = left_of(found)
    for cluster, side in ((left, 0), (1 - left, 1)):
        drawn = found.sample(500, np.random.default_rng(1), {"cluster": cluster})
        assert np.mean(drawn["side"] == side) > 0.95
        assert np.mean((drawn["shade"] >= 5) == side) > 0.9
    assert found.weights[left] == pytest.approx(0.75, abs=0.03)


def test_weights_are_noisy_counts_and_no_exact_ones() -> None:
    plan = Mixture.plan(TABLE, BUDGET, configure_mixture("independent", clusters=4), already=(), records=3000)
    noise = plan.clustering.counts_noise
    found = [Mixture.fit(two_kinds(), plan, Ledger(epsilon=1.0, delta=1e-6), FitContext(seed=1)) for _ in range(2)]
    for mixture in found:
        assert mixture.weights.sum() == pytest.approx(1)
        assert (mixture.weights > 0).all()
        assert mixture.records == 3000
        counts = 3000 * mixture.weights
        assert not np.allclose(counts, np.rint(counts), atol=1e-4)  # as those of 3000 records would be
    assert noise > 10
    assert not np.array_equal(found[0].weights, found[1].weights)


def test_components_are_drawn_in_proportion() -> None:
    mixture = fit_independent()
    drawn = mixture.sample(20_000, np.random.default_rng(2), {})
    assert np.mean(drawn["side"] == 0) == pytest.approx(0.75, abs=0.03)
    dark = drawn["shade"] < 5
    assert np.mean(dark == (drawn["side"] == 0)) > 0.9  # which no single component of this kind could know
    assert np.corrcoef(drawn["side"][1:], drawn["side"][:-1])[0, 1] < 0.05  # and they are shuffled


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(("by", "other"), [(["a0", "a1", "a2"], "b"), ("b", "a0")], ids=["three columns", "one"])
def test_clusters_go_by_the_columns_that_are_asked_for(by: Any, other: str, public: bool) -> None:
    """Three columns agree with each other, and a fourth is by itself: clusters know one or the other."""
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 2000)) < 0.5
    data = {"a0": first, "a1": first, "a2": first, "b": second}
    schema = schema_of({name: {"type": "boolean"} for name in data}, records=2000)
    options: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-6, "clusters": 2, "seed": 1}
    options["public"] = {name: values[:100] for name, values in data.items()} if public else None
    release = Synthesizer("independent", settings={**CLUSTERED, "by": by}, **options).fit(data, schema).release_
    drawn = [release.sample(500, seed=1, where={"cluster": cluster}) for cluster in (0, 1)]
    told = by if isinstance(by, str) else by[0]
    assert abs(np.mean(drawn[0][told]) - np.mean(drawn[1][told])) > 0.95
    assert abs(np.mean(drawn[0][other]) - np.mean(drawn[1][other])) < 0.15
    assert release.verify() == []


def test_a_mixture_of_more_clusters_than_there_are_records() -> None:
    schema = schema_of(COLUMNS, records=5)
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clusters": 8}
    for model, settings in (("independent", {}), ("vae", QUICK)):
        data = decode_records(two_kinds(5))
        release = Synthesizer(model, **options, settings={**CLUSTERED, **settings}).fit(data, schema).release_
        assert release.verify() == []
        assert len(release.sample(50)) == 50
        assert len(release.sample(5, where={"cluster": 7})) == 5


def test_one_cluster_is_the_plain_model() -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "seed": 1, "noise": NoiseSource.seeded(1)}
    release = Synthesizer("independent", clusters=1, **options).fit(decode_records(two_kinds(50)), TABLE).release_
    assert isinstance(release.model, Independent)
    assert not any("clustering" in charge.purpose for charge in release.certificate.charges)
    with pytest.raises(DataError, match="there is no column 'cluster'"):
        release.sample(3, where={"cluster": 0})


# --- what it costs ---


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_the_clustering_has_its_share_and_the_components_have_the_rest(share: float) -> None:
    configuration = configure_mixture("vae", clusters=5, clustering=share, **QUICK)
    plan = Mixture.plan(TABLE, BUDGET, configuration, already=(), records=3000)
    clustering = [charge for charge in plan.charges if charge.purpose.startswith("clustering")]
    other = [charge for charge in plan.charges if charge not in clustering]
    assert len(clustering) == 4
    assert 0.998 < compute_epsilon(plan.charges, delta=1e-6) <= 1.0
    spent = compute_epsilon(clustering, delta=1e-6)
    assert 0.5 * share**0.5 < spent < 1.5 * share**0.5
    assert compute_epsilon(other, delta=1e-6) < 1.0


@pytest.mark.parametrize("clusters", [2, 9])
@pytest.mark.parametrize("component", ["independent", "vae", "rbm"])
def test_it_costs_the_same_however_many_components_there_are(component: str, clusters: int) -> None:
    known = get_configuration(component).model_fields
    quick = {name: value for name, value in QUICK.items() if name in known}
    configuration = configure_mixture(component, clusters=clusters, **quick)
    plan = Mixture.plan(TABLE, BUDGET, configuration, already=(), records=100)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    mixture = Mixture.fit(two_kinds(100), plan, ledger, FitContext(seed=1))
    assert len(mixture.components) == clusters
    release = Release(TABLE, mixture, certify(ledger, TABLE))
    assert release.certificate.charges == list(plan.charges)
    assert release.verify() == []


def test_a_public_column_is_private_within_a_cluster() -> None:
    """In which cluster a record is says something of its other columns, so nothing exact may be said of a cluster."""
    columns = {**COLUMNS, "side": {**COLUMNS["side"], "public": True}}
    schema = schema_of(columns, records=3000)
    records = Records(schema, two_kinds().codes, 3000)
    plan = Mixture.plan(schema, BUDGET, configure_mixture("independent"), already=(), records=3000)
    assert "marginal of side" in [charge.purpose for charge in plan.charges]
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    first = Mixture.fit(records, plan, ledger, FitContext(seed=1))
    assert ledger.charges == plan.charges
    again = Mixture.from_state(schema, first.state())
    charges = [charge for charge in plan.charges if charge.purpose != "marginal of side"]
    for mixture in (first, again):
        released = ReleasedMixture(schema, mixture.state())
        assert released.find_unpaid(plan.charges) == []
        assert released.find_unpaid(charges) == ["marginal of 'side'"]


def test_what_public_records_began_need_not_be_paid_for() -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clusters": 2, "settings": CLUSTERED}
    public = decode_records(two_kinds(200, seed=5))
    release = Synthesizer("independent", public=public, **options).fit(decode_records(two_kinds(300)), TABLE).release_
    assert release.verify() == []
    purposes = {charge.purpose for charge in release.certificate.charges}
    assert not {"clustering: kernel width", "clustering: space"} & purposes
    state = release.model.state()
    lying = ReleasedMixture(TABLE, State(state.tensors, {**state.config, "public": False}))
    assert lying.find_unpaid(release.certificate.charges) == ["clustering: kernel width", "clustering: space"]


# --- conditions ---


@every_mixture
@pytest.mark.parametrize(("side", "share"), [(0, 0.75), (1, 0.25)])
def test_conditions_choose_components_as_bayes_would(mixture: Any, side: int, share: float) -> None:
    found = mixture()
    assert np.exp(found.log_evidence({"side": side})) == pytest.approx(share, abs=0.04)
    chances = found._compute_chances({"side": side})
    left = left_of(found)
    assert chances[left if side == 0 else 1 - left] > 0.95
    drawn = found.sample(2000, np.random.default_rng(4), {"side": side})
    assert set(drawn["side"].tolist()) == {side}
    assert np.mean((drawn["shade"] >= 5) == side) > 0.9


def test_the_chances_of_components_are_those_of_the_joint_distribution() -> None:
    """Against a slow count of how often a condition holds in each component."""
    mixture = fit_independent()
    chances = mixture._compute_chances({"left0": 1, "shade": 2})
    joint = []
    for cluster, weight in enumerate(mixture.weights):
        component: Any = mixture.components[cluster]
        joint.append(weight * component.marginals["left0"][1] * component.marginals["shade"][2])
    assert chances == pytest.approx(np.array(joint) / sum(joint), abs=1e-9)
    evidence = mixture.log_evidence({"left0": 1, "shade": 2})
    assert np.exp(evidence) == pytest.approx(sum(joint))
    inside = mixture.log_evidence({"cluster": 1, "left0": 1, "shade": 2})
    assert np.exp(inside) == pytest.approx(joint[1])


def test_sets_of_values_and_of_clusters_are_weighed_as_bayes_would() -> None:
    mixture = fit_independent()
    where: dict[str, CodeSet | int] = {"left0": 1, "shade": CodeSet.between(2, 4)}
    joint = []
    for cluster, weight in enumerate(mixture.weights):
        component: Any = mixture.components[cluster]
        joint.append(weight * component.marginals["left0"][1] * component.marginals["shade"][2:5].sum())
    assert mixture._compute_chances(where) == pytest.approx(np.array(joint) / sum(joint), abs=1e-9)
    assert np.exp(mixture.log_evidence(where)) == pytest.approx(sum(joint))
    both = CodeSet.of(range(len(mixture.weights)))
    assert mixture._compute_chances({"cluster": both}) == pytest.approx(mixture.weights)
    assert mixture._compute_chances({**where, "cluster": both}) == pytest.approx(mixture._compute_chances(where))


@every_mixture
def test_a_cluster_and_another_condition_hold_together(mixture: Any) -> None:
    found = mixture()
    left = left_of(found)
    drawn = found.sample(300, np.random.default_rng(5), {"cluster": left, "side": 1})
    assert set(drawn["side"].tolist()) == {1}
    assert np.mean(drawn["shade"] < 5) > 0.5  # those on the left, though few of them say so


def _release() -> Release:
    return Release(TABLE, fit_independent(), certify(Ledger(epsilon=1.0, delta=1e-6), TABLE))


@pytest.mark.parametrize("cluster", [0, "0", " 1 ", np.int64(1)], ids=repr)
def test_a_cluster_is_a_number(cluster: Any) -> None:
    assert len(_release().sample(7, where={"cluster": cluster, "side": "left"})) == 7


def test_clusters_can_be_listed_and_compared() -> None:
    for where in (["cluster in 0,1"], ["cluster>=0", "cluster<1"], {"cluster": [0, 1]}, ["cluster != 1"]):
        assert len(_release().sample(7, where=where)) == 7
    with pytest.raises(DataError, match="no value of 'cluster' satisfies cluster>1"):
        _release().sample(7, where="cluster>1")


@pytest.mark.parametrize(
    "cluster",
    [2, -1, "two", "", None, 1.0, 0.5, True, float("nan"), float("inf"), "1_0", "٠", "9" * 5000, [2], 10**30],
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
    data = {**decode_records(two_kinds(100)), "cluster": np.zeros(100, bool)}
    with pytest.raises(SundogError, match=r"has a column 'cluster'.*rename it"):
        Synthesizer("independent", epsilon=1.0, clusters=2, ledger=ledger).fit(data, schema)
    assert ledger.charges == ()


def test_people_with_several_records_are_refused_before_anything_is_spent() -> None:
    schema = schema_of(COLUMNS, unit="person", cap=3, records=100)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    data = {**decode_records(two_kinds(100)), "person": np.arange(100)}
    with pytest.raises(SundogError, match="up to 3 records here, which may be in different clusters"):
        Synthesizer("independent", epsilon=1.0, clusters=2, ledger=ledger).fit(data, schema)
    assert ledger.charges == ()
    one = schema_of(COLUMNS, unit="person", records=100)
    release = Synthesizer("independent", epsilon=1.0, clusters=2, settings=CLUSTERED).fit(data, one).release_
    assert release.verify() == []


@pytest.mark.parametrize("clusters", [0, -3, 2.5, "3", None, 501, 10**30], ids=repr)
def test_a_number_of_clusters_that_is_none_is_refused(clusters: Any) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(SundogError, match="clusters must be a whole number"):
        Synthesizer("independent", epsilon=1.0, clusters=clusters, ledger=ledger).fit(
            decode_records(two_kinds(9)), TABLE
        )
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
        ("dimension", 33),
        ("dimension", 2050),
        ("iterations", 0),
        ("by", "nothing"),
        ("by", []),
        ("by", ["side", 1]),
        ("by", ["side", ["side"]]),
        ("by", 3),
        ("hidden", 0),
        ("nonsense", 1),
    ],
)
def test_invalid_settings_are_refused(name: str, value: Any) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(SundogError, match=f"setting '{name}'"):
        Synthesizer("vae", epsilon=1.0, clusters=2, ledger=ledger, settings={name: value}).fit(
            decode_records(two_kinds(9)), TABLE
        )
    assert ledger.charges == ()


@pytest.mark.parametrize("clusters", [1, 2])
def test_shares_that_leave_nothing_are_refused_before_anything_is_spent(clusters: int) -> None:
    """Records are not declared here, so that they would be counted, and paid for, before the plan."""
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    asked = {"means": 0.5, "moments": 0.4} if clusters == 1 else {"clustering": 0.7}
    names = r"clustering=0.7, means=0.05, moments=0.02: 0.77" if clusters > 1 else r"means=0.5, moments=0.4: 0.9"
    with pytest.raises(SundogError, match=f"settings {names} of the budget; together they may take 0.75"):
        Synthesizer("vae", epsilon=1.0, clusters=clusters, ledger=ledger, settings=asked).fit(
            decode_records(two_kinds(9)), schema_of(COLUMNS)
        )
    assert ledger.charges == ()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_the_largest_shares_leave_enough_for_what_else_there_is_to_pay(epsilon: float) -> None:
    """A count and a schema that were learned have an eighth of ε, at most."""
    configuration = configure_mixture("vae", clustering=0.25, means=0.25, moments=0.25, **QUICK)
    before = [Charge(event=Pure(epsilon=epsilon / 8), purpose="before")]
    plan = Mixture.plan(TABLE, Budget(epsilon, 1e-6), configuration, already=before, records=3000)
    assert compute_epsilon([*before, *plan.charges], delta=1e-6) <= epsilon


def test_a_component_must_know_of_parts() -> None:
    with pytest.raises(SundogError, match="model 'gan' cannot be the component of a mixture"):
        configure_mixture("gan")
    with pytest.raises(SundogError, match="model 'mixture': say of what"):
        configure("mixture", {}, clusters=3)
    for name in MODELS:
        able = "clusters" in get_configuration(name).options
        assert able == (hasattr(get_model(name), "fit_parts") and hasattr(get_model(name), "log_evidence"))


def test_public_data_is_one_file_with_all_columns() -> None:
    columns = {"image": {"type": "image", "shape": [2, 2], "levels": 2}, "digit": COLUMNS["side"]}
    images, labels = np.zeros((9, 2, 2), np.uint8), np.array(["left"] * 9)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    synthesizer = Synthesizer("independent", epsilon=1.0, clusters=2, public=images, ledger=ledger)
    with pytest.raises(DataError, match="column 'digit' is missing; public data is one file") as error:
        synthesizer.fit(images, schema_of(columns, records=9), labels=labels)
    assert len(str(error.value).splitlines()) == 1
    assert ledger.charges == ()


@pytest.mark.parametrize("clusters", [1, 3])
def test_a_mixture_is_of_something_that_is_no_mixture(clusters: int) -> None:
    with pytest.raises(SundogError, match="say of what"):
        Synthesizer("mixture", epsilon=1.0, clusters=clusters).fit(decode_records(two_kinds(9)), TABLE)


def test_another_model_does_not_go_on_with_an_interrupted_mixture(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clusters": 2, "settings": CLUSTERED}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vae, "fit_parts", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            Synthesizer("vae", **options).fit(decode_records(two_kinds(50)), TABLE, out=tmp_path / "o.sundog")
    with pytest.raises(SundogError, match="the interrupted fit had another model"):
        Synthesizer("independent", **options).fit(
            decode_records(two_kinds(50)), TABLE, out=tmp_path / "o.sundog", resume=True
        )


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
