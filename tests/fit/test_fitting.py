"""One fit, stage by stage: the budget, and what is left behind."""

from __future__ import annotations

import importlib.metadata
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.fit.material import COLUMNS, LEARNED, make_data, make_schema

import sundog
from sundog.errors import BudgetExceededError, DataError, LedgerError, ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.independent import Independent
from sundog.models.protocol import State
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.release.release import Release, _get_version

# --- the budget ---


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("columns", [COLUMNS, LEARNED], ids=["declared", "learned"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_stage_together_spends_the_budget_and_no_more(
    epsilon: float, columns: dict[str, Any], delta: float | None
) -> None:
    data = make_data(50_000)
    release = Synthesizer("independent", epsilon=epsilon, delta=delta).fit(data, make_schema(columns)).release_
    certificate = release.certificate
    given = certificate.conditional
    spent = compute_fit_epsilon(certificate.charges, delta=certificate.delta if given is None else given.delta)
    assert 0.998 * epsilon <= spent <= epsilon
    assert certificate.spent["pld"] == pytest.approx(spent)
    assert release.verify() == []


@pytest.mark.parametrize("columns", [COLUMNS, LEARNED], ids=["declared", "learned"])
def test_a_declared_number_of_records_leaves_nothing_unspent(columns: dict[str, Any]) -> None:
    certificate = (
        Synthesizer("independent", epsilon=1.0)
        .fit(make_data(5000), make_schema(columns, records=5000))
        .release_.certificate
    )
    assert 0.998 <= compute_epsilon(certificate.charges, delta=certificate.delta) <= 1


def test_stages_are_reported_in_order_with_their_progress(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    synthesizer = Synthesizer("independent", epsilon=4.0)
    synthesizer.fit(
        make_data(5000), make_schema(LEARNED), out=tmp_path / "o.sundog", progress=lambda *what: told.append(what)
    )
    stages = [stage for stage, _ in itertools.groupby(stage.splitlines()[0] for stage, _ in told)]
    given = synthesizer.release_.certificate.conditional
    assert given is not None
    delta = given.delta
    assert delta < 1e-5
    assert stages == [
        "reading",
        # once the records were counted
        f"budget: ε = 4, δ = 1e-05 (promised; the noise is for δ = {delta:.3g}, which follows from the noisy number of "
        "records)",
        "learning the schema",
        "planning",
        "counting",
        "saving",
    ]
    assert all(0.0 <= done <= 1.0 for _, done in told)


# --- bad data is said before anything is spent ---


@pytest.mark.parametrize(
    ("columns", "frame"),
    [
        (COLUMNS, pd.DataFrame({"n": [1, 2]})),
        (COLUMNS, pd.DataFrame({"n": [1, 99], "b": [True, False]})),
        (COLUMNS, pd.DataFrame({"n": [1, None], "b": [True, False]})),
        (COLUMNS, pd.DataFrame({"n": [1, 2], "b": ["yes", "perhaps"]})),
        (COLUMNS, pd.DataFrame({"n": [], "b": []})),
        (LEARNED, pd.DataFrame({"n": ["one", "two"], "b": [True, False]})),
        (LEARNED, pd.DataFrame({"n": [1, 2], "b": ["yes", "perhaps"]})),
        (LEARNED, pd.DataFrame({"b": [True, False]})),
    ],
    ids=["missing", "out of bounds", "empty value", "undeclared", "no records", "text", "beside one", "unlearned"],
)
@pytest.mark.parametrize("ledger_is_there", [True, False])
def test_bad_data_leaves_no_trace(
    columns: dict[str, Any], frame: pd.DataFrame, ledger_is_there: bool, tmp_path: Path
) -> None:
    path = tmp_path / "all.ledger"
    if ledger_is_there:
        Ledger.create(path, epsilon=1.0, delta=1e-5)
    with pytest.raises(DataError):
        Synthesizer("independent", epsilon=1.0, ledger=path).fit(frame, make_schema(columns), out=tmp_path / "o.sundog")
    assert [file.name for file in tmp_path.iterdir()] == ["all.ledger"] * ledger_is_there
    if ledger_is_there:
        assert Ledger.open(path).charges == ()


def test_a_finished_fit_leaves_the_release_and_nothing_else(tmp_path: Path) -> None:
    Synthesizer("independent", epsilon=1.0).fit(make_data(100), make_schema(), out=tmp_path / "o.sundog")
    assert [file.name for file in tmp_path.iterdir()] == ["o.sundog"]
    Synthesizer("independent", epsilon=1.0).fit(
        make_data(100), make_schema(), out=tmp_path / "o.sundog", overwrite=True
    )  # and may replace it
    assert [file.name for file in tmp_path.iterdir()] == ["o.sundog"]


def test_a_training_that_diverges_is_an_error_and_leaves_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Independent.state

    def astray(self: Independent) -> State:
        found = state(self)
        return State({name: np.full(tensor.shape, np.nan) for name, tensor in found.tensors.items()}, found.config)

    monkeypatch.setattr(Independent, "state", astray)
    with pytest.raises(SundogError, match="model 'independent': training diverged") as caught:
        Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(make_data(50), make_schema(), out=tmp_path / "o.sundog")
    assert "smaller learning_rate" in str(caught.value)
    assert not (tmp_path / "o.sundog").exists()


# --- what would fail at the end is said at the beginning ---


def check_no_trace(tmp_path: Path, said: str, **asked: Any) -> None:
    """The fit is refused, nothing was charged and nothing is left."""
    path = tmp_path / "all.ledger"
    if not path.exists():
        Ledger.create(path, epsilon=2.0, delta=1e-5)
    before = path.read_bytes()
    with pytest.raises(SundogError, match=said) as error:
        Synthesizer(**{"model": "independent", "epsilon": 1.0, "ledger": path, **asked}).fit(
            make_data(100), make_schema(), out=tmp_path / "o.sundog"
        )
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["all.ledger"]


def test_a_delta_that_no_certificate_can_state_costs_nothing(tmp_path: Path) -> None:
    check_no_trace(tmp_path, "delta", delta=1e-60)


@pytest.mark.parametrize("library", ["sundog", "randomgen"])
def test_a_package_without_metadata_costs_no_release(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = importlib.metadata.version

    def lacking(name: str) -> str:
        if name == library:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", lacking)
    monkeypatch.setattr("sundog.release.release._get_version", _get_version.__wrapped__)
    out = tmp_path / "o.sundog"
    Synthesizer("independent", epsilon=1.0).fit(make_data(100), make_schema(), out=out)
    assert Release.load(out).libraries[library] == (sundog.__version__ if library == "sundog" else "unknown")


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch = Path.touch

    def forbidden(path: Path, *rest: Any, **options: Any) -> None:
        if ".o.sundog." in path.name:
            raise PermissionError(13, "Permission denied")
        touch(path, *rest, **options)

    monkeypatch.setattr(Path, "touch", forbidden)  # root may write everywhere
    check_no_trace(tmp_path, r"o\.sundog: cannot be written \(Permission denied\)")


def test_a_release_that_could_not_be_written_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_: Any) -> None:
        raise ReleaseError(f"{path}: not written")

    monkeypatch.setattr("sundog.fit.preflight.write_archive", refused)
    check_no_trace(tmp_path, "not written")


@pytest.mark.parametrize("model", ["independent", "rbm"])
def test_near_exhaustion_a_refused_fit_pays_for_nothing_however_often(model: str, tmp_path: Path) -> None:
    """At any level of what is left, it is fitted or refused for nothing."""
    outcomes = set()
    settings = {"epochs": 0.1, "hidden": 4} if model == "rbm" else {}
    for number, spent in enumerate(np.linspace(0.0, 0.3, 12)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger = Ledger.create(folder / "l", epsilon=1.1, delta=1e-5)
        ledger.spend(Charge(event=Pure(epsilon=float(spent) + 1e-3), purpose="earlier"))
        before = (folder / "l").read_bytes()
        synthesizer = Synthesizer(model, epsilon=1.0, ledger=folder / "l", settings=settings)
        try:
            synthesizer.fit(make_data(20_000), make_schema(), out=folder / "o.sundog")
            outcomes.add("fitted")
            assert len(Ledger.open(folder / "l").entries) > 2
        except BudgetExceededError:
            outcomes.add("refused")
            assert (folder / "l").read_bytes() == before
            assert [file.name for file in folder.iterdir()] == ["l"]
    assert outcomes == {"fitted", "refused"}


def test_what_could_not_be_saved_here_can_be_saved_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    synthesizer = Synthesizer("independent", epsilon=1.0, ledger=ledger)
    with monkeypatch.context() as patch:
        patch.setattr(Release, "save", lambda *_: (_ for _ in ()).throw(ReleaseError("cannot be written")))
        with pytest.raises(ReleaseError):
            synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "o.sundog")
    synthesizer.release_.save(tmp_path / "elsewhere.sundog")
    assert Release.load(tmp_path / "elsewhere.sundog").verify() == []


@pytest.mark.parametrize(("epsilon", "warns"), [(20.0, False), (21.0, True), (1e9, True)])
def test_an_epsilon_that_protects_nobody_warns(epsilon: float, warns: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Synthesizer("independent", epsilon=epsilon, delta=1e-6).fit(make_data(100), make_schema())
    assert any("protects hardly anybody" in str(warning.message) for warning in caught) == warns


# --- ledgers and releases ---


def test_a_ledger_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    Ledger.create(path, epsilon=3.0, delta=1e-5)
    old = path.read_bytes()
    synthesizer = Synthesizer("independent", epsilon=1.0, ledger=path)
    synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "first.sundog")
    new = path.read_bytes()
    path.write_bytes(old)
    with pytest.raises(LedgerError, match=r"all\.ledger: lacks charges that it had when first\.sundog was made"):
        synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "second.sundog")
    assert path.read_bytes() == old
    path.write_bytes(new)
    synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "second.sundog")


def test_a_fit_without_a_place_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Synthesizer("independent", epsilon=1.0).fit(make_data(100), make_schema())
    assert list(tmp_path.iterdir()) == []


def test_too_few_records_to_learn_from_is_one_line_and_what_was_spent_stays(tmp_path: Path) -> None:
    schema, out = make_schema(LEARNED), tmp_path / "o.sundog"
    with pytest.raises(DataError, match="column 'n': too few records"):
        Synthesizer("independent", epsilon=0.5, ledger=tmp_path / "l").fit(make_data(5), schema, out=out)
    assert [charge.purpose for charge in Ledger.open(tmp_path / "l").charges] == [
        "number of records",
        "range of n",
    ]
    assert not out.exists()
    with pytest.raises(SundogError, match="--resume"):
        Synthesizer("independent", epsilon=0.5, ledger=tmp_path / "l").fit(make_data(5), schema, out=out)
