"""Interrupted fits go on wherever they were stopped, and what was spent stays spent."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from tests.fit.interruption import (
    DATA,
    HARMLESS,
    KEPT,
    LOSSY,
    SCHEMA,
    STAGES,
    fit,
    interrupt_fit,
    is_saving,
    list_spent,
    prepare,
    shared_or_not,
    stop,
)

from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers")


# --- stopped and resumed ---


@shared_or_not
@pytest.mark.parametrize("point", HARMLESS)
def test_an_interrupted_fit_goes_on_and_charges_each_stage_once(point: str, shared: bool, tmp_path: Path) -> None:
    out, ledger = prepare(tmp_path, shared=shared)
    interrupt_fit(out, ledger, HARMLESS[point])
    before = list_spent(out, ledger)
    release = fit(out, ledger, resume=Checkpoint.locate_folder(out).exists())
    purposes = [charge.purpose for charge in release.certificate.charges]
    assert purposes == list(STAGES)
    assert purposes[: len(before)] == before
    assert release.verify() == []
    loaded = Release.load(out)
    assert loaded.certificate == release.certificate
    assert loaded.verify() == []
    if ledger is not None:
        assert list_spent(out, ledger) == list(STAGES)
        assert len({entry.run for entry in Ledger.open(ledger).entries}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(p.name for p in (out, ledger) if p is not None)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("point", LOSSY)
def test_what_was_charged_and_lost_is_charged_once_however_often_it_is_lost(
    point: str, times: int, tmp_path: Path
) -> None:
    out, ledger = prepare(tmp_path, shared=True)
    interrupt_fit(out, ledger, LOSSY[point])
    for _ in range(times - 1):
        with contextlib.suppress(KeyboardInterrupt), pytest.MonkeyPatch.context() as context:
            LOSSY[point](context)
            if Checkpoint.is_begun(out):
                fit(out, ledger, resume=True)
    if Checkpoint.locate_folder(out).exists():
        fit(out, ledger, resume=True)
    assert list_spent(out, ledger) == list(STAGES)


@pytest.mark.parametrize("stage", ["records", "schema"])
def test_a_result_that_was_built_on_is_not_measured_again(stage: str, tmp_path: Path) -> None:
    """Whoever removes it from the checkpoint gets no second one for the same charge."""
    out, ledger = prepare(tmp_path, shared=True)
    interrupt_fit(out, ledger, KEPT["before the release is saved"])
    (Checkpoint.locate_folder(out) / f"{stage}.json").unlink()
    before = list_spent(out, ledger)
    for _ in range(2):
        with pytest.raises(BudgetExceededError, match="measurements of the interrupted fit were lost"):
            fit(out, ledger, resume=True)
        assert list_spent(out, ledger) == before
        assert not (Checkpoint.locate_folder(out) / f"{stage}.json").exists()


def test_too_few_records_is_a_result_too_and_not_measured_again(tmp_path: Path) -> None:
    """Its message was seen: the same charge must not pay for another try."""
    out, ledger = prepare(tmp_path, shared=True)
    few = {name: values[:5] for name, values in DATA.items()}
    synthesizer = Synthesizer("independent", epsilon=0.5, ledger=ledger)
    for resume in (False, True, True):
        with pytest.raises(DataError, match="column 'n': too few records"):
            synthesizer.fit(few, SCHEMA, out=out, resume=resume)
        assert list_spent(out, ledger) == ["number of records", "range of n"]


@pytest.mark.parametrize("point", [point for point in HARMLESS if "request" not in point and "removed" not in point])
def test_without_resume_an_interrupted_fit_is_not_overwritten(point: str, tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS[point])
    kept = {path.name: path.read_bytes() for path in Checkpoint.locate_folder(out).iterdir()}
    with pytest.raises(SundogError, match=r"o\.sundog\.partial: an earlier fit was interrupted here; add --resume"):
        fit(out, None)
    assert {path.name: path.read_bytes() for path in Checkpoint.locate_folder(out).iterdir()} == kept


def test_interrupted_twice(tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS["after the records were counted"])
    interrupt_fit(out, None, HARMLESS["after the schema was learned"], resume=True)
    interrupt_fit(out, None, HARMLESS["before the release is saved"], resume=True)
    release = fit(out, None, resume=True)
    assert [charge.purpose for charge in release.certificate.charges] == list(STAGES)
    assert release.verify() == []


def test_before_anything_was_spent_nothing_is_left(tmp_path: Path) -> None:
    for point in (stop(Ledger, "create", after=False), stop(Ledger, "spend", after=False)):
        interrupt_fit(tmp_path / "o.sundog", None, point)
        assert list(tmp_path.iterdir()) == []


@shared_or_not
@pytest.mark.parametrize("point", HARMLESS)
def test_auto_takes_the_same_model_again(point: str, shared: bool, tmp_path: Path) -> None:
    """Before it had counted it would have taken another."""
    out, ledger = prepare(tmp_path, shared=shared)
    columns = {**SCHEMA.to_dict()["columns"], "basket": {"type": "set", "universe": 3, "max_size": 2}}
    data = {**DATA, "basket": [[0, 1], [2], []] * 1000}
    asked = {"model": "auto", "epsilon": 1.0, "data": data, "schema": Schema.from_dict({"columns": columns})}
    interrupt_fit(out, ledger, HARMLESS[point], **asked)
    resume = Checkpoint.locate_folder(out).exists()
    if resume:
        with pytest.raises(SundogError, match="another model"):
            fit(out, ledger, resume=True, **{**asked, "model": "rbm"})
    release = fit(out, ledger, resume=resume, **asked)
    assert [charge.purpose for charge in release.certificate.charges] == [*STAGES, "marginal of basket"]
    assert release.verify() == []


# --- two at once ---


def test_two_fits_to_one_place_do_not_meet(tmp_path: Path) -> None:
    first = Checkpoint.begin(tmp_path / "o.sundog", {"epsilon": 1.0})
    with pytest.raises(SundogError):
        Checkpoint.begin(tmp_path / "o.sundog", {"epsilon": 1.0})
    with pytest.raises(SundogError, match="another fit is using this folder; wait for it to end"):
        Checkpoint.resume(tmp_path / "o.sundog", {"epsilon": 1.0})
    first.release()
    with pytest.raises(SundogError, match="interrupted here"):
        Checkpoint.begin(tmp_path / "o.sundog", {"epsilon": 1.0})
    second = Checkpoint.resume(tmp_path / "o.sundog", {"epsilon": 1.0})
    assert second.run == first.run
    with pytest.raises(SundogError, match="another fit is using this folder"):
        Checkpoint.resume(tmp_path / "o.sundog", {"epsilon": 1.0})
    second.remove()
    assert list(tmp_path.iterdir()) == []
    Checkpoint.begin(tmp_path / "o.sundog", {"epsilon": 1.0}).remove()


@shared_or_not
def test_a_second_fit_while_the_first_is_at_work_is_refused(shared: bool, tmp_path: Path) -> None:
    out, ledger = prepare(tmp_path, shared=shared)
    stages: list[str] = []

    def meanwhile(stage: str, done: float) -> None:
        before = list_spent(out, ledger)
        if Checkpoint.locate_folder(out).exists() and stage not in stages:
            stages.append(stage)
            for resume in (True, False):
                with pytest.raises(SundogError, match="another fit is using this folder" if resume else "partial"):
                    fit(out, ledger, resume=resume)
            assert list_spent(out, ledger) == before

    synthesizer = Synthesizer("independent", epsilon=2.0, ledger=ledger)
    release = synthesizer.fit(DATA, SCHEMA, out=out, progress=meanwhile).release_
    assert len(stages) >= 4
    assert [charge.purpose for charge in release.certificate.charges] == list(STAGES)
    assert release.verify() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(p.name for p in (out, ledger) if p is not None)


@shared_or_not
@pytest.mark.parametrize("point", HARMLESS)
def test_an_interrupted_fit_lets_others_in(point: str, shared: bool, tmp_path: Path) -> None:
    out, ledger = prepare(tmp_path, shared=shared)
    interrupt_fit(out, ledger, HARMLESS[point])
    if Checkpoint.locate_folder(out).exists():
        request = json.loads((Checkpoint.locate_folder(out) / "fit.json").read_text())["request"]
        Checkpoint.resume(out, request).release()


def test_a_checkpoint_without_a_request_is_no_dead_end(tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, stop(Checkpoint, "save_json", when=is_saving("fit"), after=False))
    Checkpoint.locate_folder(out).mkdir(exist_ok=True)
    try:
        release = fit(out, None)
    except SundogError:
        release = fit(out, None, resume=True)
    assert release.verify() == []
