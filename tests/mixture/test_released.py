"""Mixtures and their files: a mixture comes back as what it was, and what is none is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.mixture.two_kinds import TABLE, fit_independent, fit_marginals, fit_vaes, two_kinds

from sundog.data.schema import Schema
from sundog.data.writing.write import to_frame
from sundog.errors import ReleaseError
from sundog.fit.synthesizer import Synthesizer
from sundog.mixture.mixture import Mixture
from sundog.mixture.released import PUBLIC_RECORDS, ReleasedMixture
from sundog.models.protocol import State
from sundog.models.registry import get_model
from sundog.privacy.ledger import Ledger
from sundog.release.certificate import certify
from sundog.release.release import Release


def _fit_state() -> State:
    return fit_independent().state()


def _check_refusal(schema: Schema, config: dict[str, Any], tensors: dict[str, Any]) -> None:
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
def test_an_invalid_configuration_is_refused(config: dict[str, Any]) -> None:
    state = _fit_state()
    _check_refusal(TABLE, {**state.config, **config}, state.tensors)


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
    state = _fit_state()
    with np.errstate(over="ignore"):
        _check_refusal(TABLE, state.config, {**state.tensors, "weights": weights})


def test_arrays_of_more_or_fewer_components_are_refused() -> None:
    state = _fit_state()
    for name, tensor in state.tensors.items():
        for harmed in (tensor[:1], np.concatenate([tensor, tensor]), tensor[0], np.float64(1.0)):
            _check_refusal(TABLE, state.config, {**state.tensors, name: np.asarray(harmed)})


def test_arrays_of_one_component_alone_are_those_of_a_component_that_there_is() -> None:
    state = fit_marginals().state()
    apart = [name for name in state.tensors if "/" in name]
    assert apart
    for name in apart:
        tensors = {key: tensor for key, tensor in state.tensors.items() if key != name}
        _check_refusal(TABLE, state.config, tensors)
        for key in ("2/", "-1/", "/", "00/", "0/0/"):
            _check_refusal(TABLE, state.config, {**tensors, key + name.rpartition("/")[2]: state.tensors[name]})


def test_every_component_is_to_be_paid_for() -> None:
    """Not only the first: a stranger may have changed what another one measured."""
    release = Synthesizer("marginals", 1.0, 1e-6, clusters=2, seed=0).fit(to_frame(two_kinds()), TABLE).release_
    assert release.verify() == []
    state, charges = release.model.state(), release.certificate.charges
    more = {**state.config["components"][1], "units": [[9999] * len(u) for u in state.config["components"][1]["units"]]}
    config = {**state.config, "components": [state.config["components"][0], more]}
    assert ReleasedMixture(TABLE, state).find_unpaid(charges) == []
    assert ReleasedMixture(TABLE, State(state.tensors, config)).find_unpaid(charges) != []


@pytest.mark.parametrize("weights", [[0.0, 1.0], [1.0, 0.0], [0.5 + 4e-7, 0.5 + 4e-7], [1e-300, 1.0]], ids=str)
def test_odd_weights_draw_records_all_the_same(weights: list[float]) -> None:
    state = _fit_state()
    mixture = Mixture.from_state(TABLE, State({**state.tensors, "weights": np.array(weights)}, state.config))
    rng = np.random.default_rng(0)
    for where in ({}, {"side": 1}, {"cluster": 0}, {"cluster": 0, "side": 1}):
        assert len(mixture.sample(20, rng, where)["side"]) == 20
    assert mixture.log_evidence({"side": 1}) < 0


def test_weights_that_add_up_to_a_little_more_than_one_draw_records_too() -> None:
    state = _fit_state()
    tensors = {name: np.concatenate([tensor, tensor[:1]]) for name, tensor in state.tensors.items()}
    tensors["weights"] = np.array([0.5 + 4e-7, 0.5 + 4e-7, 0.0])
    config = {**state.config, "components": [*state.config["components"], state.config["components"][0]]}
    mixture = Mixture.from_state(TABLE, State(tensors, config))
    assert len(mixture.sample(20, np.random.default_rng(0), {})["side"]) == 20


def test_a_mixture_comes_back_from_its_file_as_what_it_is(tmp_path: Path) -> None:
    for mixture in (fit_independent(), fit_marginals(), fit_vaes()):
        release = Release(TABLE, mixture, certify(Ledger(epsilon=1.0, delta=1e-6), TABLE))
        release.save(tmp_path / "o.sundog")
        loaded = Release.load(tmp_path / "o.sundog")
        assert isinstance(loaded.model, Mixture)
        assert get_model("mixture") is Mixture
        assert [type(each) for each in loaded.model.components] == [type(each) for each in mixture.components]
        for where in ({}, {"cluster": 1}, {"side": "right"}, {"cluster": 0, "side": "right"}):
            one, other = (r.sample(40, seed=1, where=where) for r in (release, loaded))
            assert one.equals(other)


def test_public_records_are_said_on_the_certificate() -> None:
    """Who begins with them waives two charges, and whoever reads the certificate must know."""
    private, public = (to_frame(two_kinds(count, seed=count)) for count in (400, 100))
    made = Synthesizer("independent", 4.0, 1e-5, clusters=2, public=public, seed=0)
    release = made.fit(private, TABLE).release_
    assert release.certificate.assumed_public[-1] == PUBLIC_RECORDS
    assert release.verify() == []
    silent = release.certificate.model_copy(update={"assumed_public": release.certificate.assumed_public[:-1]})
    assert any("assumes public" in problem for problem in replace(release, certificate=silent).verify())
