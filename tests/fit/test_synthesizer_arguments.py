"""The arguments of a `Synthesizer`: checked at once, kept as they are, and known to scikit-learn."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sundog.data.schema import Schema
from sundog.errors import NotFittedError, SchemaError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Ledger

DECLARED: dict[str, Any] = {"columns": {"age": {"type": "integer", "min": 0, "max": 99}}}
FRAME = pd.DataFrame({"age": [31, 47, 25, 62] * 25})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"epsilon": 0}, "epsilon must be a positive number, not 0"),
        ({"epsilon": "1"}, "epsilon must be a number, not '1'"),
        ({"epsilon": True}, "epsilon must be a number, not True"),
        ({"epsilon": float("nan")}, "epsilon must be a positive number, not nan"),
        ({"delta": 1.0}, "delta must lie between 0 and 1, not 1.0"),
        ({"delta": 0.02}, "delta = 0.02 promises nothing: publishing every record with that probability would keep it"),
        ({"delta": 1e-60}, "delta must be above 1e-50, not 1e-60"),
        ({"epsilon": 1e-12}, "epsilon must be between 0.0001 and 1e+09, not 1e-12"),
        ({"delta": [1e-6]}, "delta must be a number"),
        ({"model": "rbmm"}, "there is no model 'rbmm'; did you mean 'rbm'?"),
        ({"model": "Independant"}, "there is no model 'Independant'; did you mean 'independent'?"),
        ({"model": None}, "model must be auto or the name of a model, not None"),
        ({"clusters": 0}, "clusters must be a whole number of 1 or more, not 0"),
        ({"clusters": 2.0}, "clusters must be a whole number of 1 or more, not 2.0"),
        ({"device": "gpu"}, "there is no device 'gpu'; choose cpu or cuda"),
        ({"seed": -1}, "seed must be a whole number of 0 or more, or None, not -1"),
        ({"seed": "7"}, "seed must be a whole number of 0 or more, or None, not '7'"),
        ({"ledger": 7}, "ledger must be a Ledger or the path of a ledger file, not 7"),
        ({"settings": [("hidden", 3)]}, "settings must be a mapping of names to values"),
        ({"model": "rbm", "settings": {"hiden": 3}}, "model 'rbm' has no setting 'hiden'; did you mean 'hidden'?"),
        ({"model": "rbm", "settings": {"epochs": "x"}}, "model 'rbm': setting 'epochs' must be a number above 0"),
        ({"model": "vae", "settings": {"layers": 0}}, "model 'vae': setting 'layers' must be"),
        ({"model": "gan", "settings": {"hidden": 0}}, "model 'gan': setting 'hidden' must be"),
        (
            {"model": "gan", "settings": {"means": 0.5, "classifier": 0.5}},
            "settings means=0.5, classifier=0.5: 1 of the",
        ),
        (
            {"model": "rbm", "clusters": 3, "settings": {"kernel": "x"}},
            "model 'mixture': setting 'kernel' must be gaussian or",
        ),
        ({"model": "rbm", "clusters": 501, "settings": {"hidden": 9}}, "clusters must be a whole number from 2 to"),
        ({"settings": {"clusters": 3}}, "'clusters' is not a setting of a model"),
        ({"noise": 7}, "noise must be a NoiseSource, not 7"),
        ({"show_loss": "yes"}, "show_loss must be True or False, not 'yes'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_at_once_in_one_line(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(SundogError) as error:
        Synthesizer(**arguments)
    assert isinstance(error.value, ValueError)
    assert str(error.value).startswith(said)
    assert len(str(error.value).splitlines()) == 1
    synthesizer = Synthesizer()
    with pytest.raises(SundogError):
        synthesizer.set_params(**{"epsilon": 2.0, **arguments})
    assert synthesizer.get_params() == Synthesizer().get_params()  # nothing has changed
    for name, value in arguments.items():
        setattr(synthesizer, name, value)
    with pytest.raises(SundogError):  # nor does it get past `fit`
        synthesizer.fit(FRAME, DECLARED)


def test_what_only_a_fit_leaves_says_so_before_the_fit() -> None:
    synthesizer = Synthesizer("independent", delta=1e-6)
    for name in ("release_", "private_", "sample", "certificate"):
        assert not hasattr(synthesizer, name)
        with pytest.raises(
            NotFittedError, match=r"^this Synthesizer is not fitted yet; call fit\(data, schema\) first"
        ):
            getattr(synthesizer, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'relase_'$"):
        synthesizer.relase_  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(copy.deepcopy(synthesizer), "release_")
    synthesizer.fit(FRAME, DECLARED)
    assert synthesizer.private_ is None
    with pytest.raises(AttributeError, match=r"use release_\.sample"):
        synthesizer.sample  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("epsilon", [1, np.float64(1), np.float32(1), np.int64(1)], ids=repr)
def test_numbers_of_numpy_are_numbers(epsilon: Any) -> None:
    Synthesizer("independent", epsilon=epsilon, delta=1e-6, seed=np.int64(3)).fit(FRAME, DECLARED)  # type: ignore[arg-type]


def test_arguments_are_kept_as_they_were_given_and_cloned() -> None:
    ledger, settings = Ledger(epsilon=3.0, delta=1e-6), {"hidden": 10}
    synthesizer = Synthesizer("rbm", 2.0, 1e-6, ledger=ledger, settings=settings)
    copied = clone(synthesizer)
    assert copied is not synthesizer
    for name, value in synthesizer.get_params().items():
        assert getattr(copied, name) is value, name
    assert copied.ledger is ledger  # a copy of it would have its budget twice
    assert not hasattr(clone(Synthesizer("independent", delta=1e-6).fit(FRAME, DECLARED)), "release_")


def test_arguments_can_be_changed_by_name() -> None:
    synthesizer = Synthesizer().set_params(model="vae", epsilon=2.0)
    assert synthesizer.get_params()["model"] == "vae"
    assert repr(synthesizer) == "Synthesizer(model='vae', epsilon=2.0)"
    with pytest.raises(SundogError, match="there is no argument 'epsilonn'; did you mean 'epsilon'"):
        synthesizer.set_params(epsilonn=2.0)


def test_a_schema_is_a_schema_a_path_or_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    Schema.from_dict(DECLARED).save(path)
    schemas: list[Any] = [Schema.from_dict(DECLARED), path, str(path), DECLARED]
    for schema in schemas:
        release = Synthesizer("independent", delta=1e-6).fit(FRAME, schema).release_
        assert release.schema == Schema.from_dict(DECLARED)
    wrong: Any
    for wrong in (7, None, FRAME, tmp_path / "missing.yaml", {"colums": {}}):
        with pytest.raises(SchemaError) as error:
            Synthesizer("independent", delta=1e-6).fit(FRAME, wrong)
        assert len(str(error.value).splitlines()) == 1


def test_the_module_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "sundog", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("sundog ")
    wrong = subprocess.run([sys.executable, "-m", "sundog", "verify", "no.sundog"], capture_output=True, text=True)
    assert wrong.returncode == 2


def test_a_fit_checks_its_budget_whoever_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    synthesizer = Synthesizer("independent", epsilon=1e9)
    monkeypatch.setattr(Synthesizer, "_check", lambda _: None)
    synthesizer.epsilon = 1e10
    with pytest.raises(SundogError, match="epsilon must be between"):
        synthesizer.fit(FRAME, DECLARED)
