"""Interrupted fits: at whatever point one is stopped, it goes on, and what was spent stays spent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, LedgerError, SundogError
from sundog.fit import stages
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.independent import Independent
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

SCHEMA = Schema.from_dict({"columns": {"n": {"type": "integer", "learn": True}, "b": {"type": "boolean"}}})
DATA = {"n": np.arange(3000) % 10, "b": np.arange(3000) % 2 == 0}
STAGES = {
    "number of records": "records",
    "range of n": "schema",
    "marginal of n": "model",
    "marginal of b": "model",
}

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers")


def fit(out: Path, ledger: Path | None, *, resume: bool = False, **options: Any) -> Release:
    options = {"epsilon": 2.0, "schema": SCHEMA, **options}
    schema = options.pop("schema")
    synthesizer = Synthesizer(**{"model": "independent", "ledger": ledger, **options})
    return synthesizer.fit(DATA, schema, out=out, resume=resume).release_


Patch = Callable[[pytest.MonkeyPatch], None]


def stop(owner: type | ModuleType, name: str, *, when: Callable[..., bool] = lambda *_: True, after: bool) -> Patch:
    """Makes Ctrl-C happen before or after a call of a method."""
    raw = owner.__dict__[name]
    original = raw.__func__ if isinstance(raw, classmethod) else raw

    def patched(*args: Any, **kwargs: Any) -> Any:
        if not when(*args):
            return original(*args, **kwargs)
        if after:
            original(*args, **kwargs)
        raise KeyboardInterrupt

    return lambda patch: patch.setattr(owner, name, classmethod(patched) if isinstance(raw, classmethod) else patched)


def is_saving(stage: str) -> Callable[..., bool]:
    return lambda checkpoint, name, *rest: name == stage


def is_paying(purpose: str) -> Callable[..., bool]:
    return lambda ledger, *charges: any(charge.purpose == purpose for charge in charges)


# Points at which nothing that was measured is lost.
KEPT: dict[str, Patch] = {
    "after the request was kept": stop(Checkpoint, "save_json", when=is_saving("fit"), after=True),
    "after the records were counted": stop(Checkpoint, "save_json", when=is_saving("records"), after=True),
    "after the schema was learned": stop(Checkpoint, "save_json", when=is_saving("schema"), after=True),
    "before the model is planned": stop(stages, "plan_model", after=False),
    "after the model is planned": stop(stages, "plan_model", after=True),
    "before the model is fitted": stop(Independent, "fit", after=False),
    "after the model was kept": stop(Checkpoint, "save_json", when=is_saving("model"), after=True),
    "before the release is saved": stop(Release, "save", after=False),
    "after the release was saved": stop(Release, "save", after=True),
    "before the checkpoint is removed": stop(Checkpoint, "remove", after=False),
}
# Points between a charge and the keeping of what it paid for.
LOSSY: dict[str, Patch] = {
    "after the count was charged": stop(Ledger, "spend", when=is_paying("number of records"), after=True),
    "before the count is kept": stop(Checkpoint, "save_json", when=is_saving("records"), after=False),
    "after the range was charged": stop(Ledger, "spend", when=is_paying("range of n"), after=True),
    "before the schema is kept": stop(Checkpoint, "save_json", when=is_saving("schema"), after=False),
    "after the marginals were charged": stop(Ledger, "spend", when=is_paying("marginal of n"), after=True),
    "before the marginals are kept": stop(Checkpoint, "save_tensors", when=is_saving("marginals"), after=False),
    "after the marginals were kept": stop(Checkpoint, "save_tensors", when=is_saving("marginals"), after=True),
    "before the model's arrays are kept": stop(Checkpoint, "save_tensors", when=is_saving("model"), after=False),
    "before the model is marked as done": stop(Checkpoint, "save_json", when=is_saving("model"), after=False),
}
HARMLESS = {**KEPT, **LOSSY}  # all of them: what was charged and lost, the same charge pays for again
shared_or_not = pytest.mark.parametrize("shared", [False, True], ids=["own ledger", "shared ledger"])


def interrupt_fit(out: Path, ledger: Path | None, patch: Patch, **options: Any) -> None:
    with pytest.MonkeyPatch.context() as context:
        patch(context)
        with pytest.raises(KeyboardInterrupt):
            fit(out, ledger, **options)


def prepare(tmp_path: Path, *, shared: bool) -> tuple[Path, Path | None]:
    if shared:
        Ledger.create(tmp_path / "all.ledger", epsilon=2.0, delta=1e-5)
    return tmp_path / "o.sundog", tmp_path / "all.ledger" if shared else None


def list_spent(out: Path, ledger: Path | None) -> list[str]:
    path = ledger or Checkpoint.locate_folder(out) / "ledger.jsonl"
    return [charge.purpose for charge in Ledger.open(path).charges] if path.exists() else []


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
    (out, ledger), asked = prepare(tmp_path, shared=shared), {"model": "auto", "epsilon": 1.0}
    interrupt_fit(out, ledger, HARMLESS[point], **asked)
    resume = Checkpoint.locate_folder(out).exists()
    if resume:
        with pytest.raises(SundogError, match="another model"):
            fit(out, ledger, resume=True, **{**asked, "model": "rbm"})
    release = fit(out, ledger, resume=resume, **asked)
    assert [charge.purpose for charge in release.certificate.charges] == list(STAGES)
    assert release.verify() == []


# --- resumed with something else ---


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("epsilon", {"epsilon": 3.0}),
        ("delta", {"delta": 1e-6}),
        ("seed", {"seed": 1}),
        ("ledger", {}),
        ("schema", {"schema": Schema.from_dict({**SCHEMA.to_dict(), "records": 5})}),
    ],
)
def test_a_fit_with_other_settings_is_not_resumed(key: str, options: dict[str, Any], tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS["after the schema was learned"])
    before = list_spent(out, None)
    ledger = tmp_path / "another" if key == "ledger" else None
    with pytest.raises(SundogError, match=f"had another {key}"):
        fit(out, ledger, resume=True, **options)
    assert list_spent(out, None) == before
    assert [path.name for path in tmp_path.iterdir()] == ["o.sundog.partial"]
    assert fit(out, None, resume=True).verify() == []


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(SundogError, match="there is nothing to resume"):
        fit(tmp_path / "o.sundog", None, resume=True)
    assert list(tmp_path.iterdir()) == []


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _delete(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.unlink()
    Ledger.create(path, epsilon=2.0, delta=1e-5)


def _cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _edit(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"range of n", b"range of m"))


def _remove_header(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


def _scribble(path: Path) -> None:
    path.write_text("my shopping list\n")


@shared_or_not
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_delete, r"no such file|has no ledger to resume with"),
        (_empty, "lacks what the interrupted fit spent"),
        (_cut, "lacks what the interrupted fit spent"),
        (_edit, "line 3 was edited"),
        (_remove_header, "does not follow from the lines before"),
        (_scribble, "line 1 is damaged"),
        (lambda path: path.write_bytes(b""), "is not a sundog ledger"),
    ],
    ids=["lost", "emptied", "cut", "edited", "headless", "scribbled", "blank"],
)
def test_a_ledger_that_lost_what_was_spent_is_noticed(
    damage: Callable[[Path], None], said: str, shared: bool, tmp_path: Path
) -> None:
    """And is never made anew; what the checkpoint holds stays, whatever is wrong."""
    out, ledger = prepare(tmp_path, shared=shared)
    interrupt_fit(out, ledger, HARMLESS["before the release is saved"])
    path = ledger or Checkpoint.locate_folder(out) / "ledger.jsonl"
    damage(path)
    before = read_files(Checkpoint.locate_folder(out))
    for _ in range(2):
        with pytest.raises(LedgerError, match=said) as error:
            fit(out, ledger, resume=True)
        assert "\n" not in str(error.value)
        assert read_files(Checkpoint.locate_folder(out)) == before
    assert path.exists() == (damage is not _delete)
    assert not out.exists()


@shared_or_not
def test_a_resumed_fit_that_fails_before_it_spends_keeps_the_checkpoint(shared: bool, tmp_path: Path) -> None:
    out, ledger = prepare(tmp_path, shared=shared)
    interrupt_fit(out, ledger, stop(Ledger, "run", after=False))  # nothing is spent, and nothing is left
    assert not Checkpoint.locate_folder(out).exists()
    interrupt_fit(out, ledger, LOSSY["before the count is kept"])
    before = read_files(Checkpoint.locate_folder(out))
    for patch in (stop(Ledger, "open", after=False), stop(Ledger, "run", after=False), stop(Ledger, "run", after=True)):
        interrupt_fit(out, ledger, patch, resume=True)
        assert read_files(Checkpoint.locate_folder(out)) == before
    assert fit(out, ledger, resume=True).verify() == []


def test_a_shared_ledger_that_has_no_more_keeps_the_checkpoint_of_a_resumed_fit(tmp_path: Path) -> None:
    out, ledger = prepare(tmp_path, shared=True)
    interrupt_fit(out, ledger, HARMLESS["after the records were counted"])
    root = Ledger.open(tmp_path / "all.ledger")
    root.spend(Charge(event=Pure(epsilon=1.9), purpose="another release"))
    before = read_files(Checkpoint.locate_folder(out))
    with pytest.raises(BudgetExceededError, match="refused"):
        fit(out, ledger, resume=True)
    assert read_files(Checkpoint.locate_folder(out)) == before


@pytest.mark.parametrize("delta", [1e-5, 1e-8, 1e-9, 1e-11])
def test_a_shared_ledger_lets_a_fit_go_on_after_its_count(delta: float, tmp_path: Path) -> None:
    out, ledger = tmp_path / "o.sundog", tmp_path / "all.ledger"
    Ledger.create(ledger, epsilon=2.0, delta=delta)
    declared = Schema.from_dict({"columns": {"n": {"type": "integer", "min": 0, "max": 9}, "b": {"type": "boolean"}}})
    interrupt_fit(out, ledger, HARMLESS["after the records were counted"], schema=declared)
    release = fit(out, ledger, resume=True, schema=declared)
    assert [charge.purpose for charge in release.certificate.charges] == [
        purpose for purpose in STAGES if purpose != "range of n"
    ]
    assert release.certificate.delta <= delta
    assert release.verify() == []


def test_test_noise_before_the_interruption_marks_the_release(tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS["after the schema was learned"], noise=NoiseSource.seeded(1))
    release = fit(out, None, resume=True)
    assert not release.certificate.private
    assert str(release.certificate).startswith("NOT PRIVATE")
    assert Release.load(out).verify() != []


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


# --- the checkpoint ---


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}"])
@pytest.mark.parametrize("file", ["fit.json", "records.json"])
def test_a_damaged_checkpoint_is_one_line(file: str, content: bytes, tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS["after the records were counted"])
    (Checkpoint.locate_folder(out) / file).write_bytes(content)
    before = read_files(Checkpoint.locate_folder(out))
    with pytest.raises(SundogError) as error:
        fit(out, None, resume=True)
    assert "\n" not in str(error.value)
    assert read_files(Checkpoint.locate_folder(out)) == before


@pytest.mark.parametrize("content", [b"", b"not tensors", b"\x08\0\0\0\0\0\0\0{}      "])
def test_damaged_arrays_are_one_line(content: bytes, tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS["before the release is saved"])
    (Checkpoint.locate_folder(out) / "model.safetensors").write_bytes(content)
    with pytest.raises(SundogError):
        fit(out, None, resume=True)


def test_the_checkpoint_keeps_nothing_but_what_was_measured(tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    interrupt_fit(out, None, HARMLESS["before the release is saved"])
    folder = Checkpoint.locate_folder(out)
    assert sorted(path.name for path in folder.iterdir()) == [
        "fit.json",
        "ledger.jsonl",
        "marginals.safetensors",
        "model.json",
        "model.safetensors",
        "records.json",
        "release.json",
        "schema.json",
    ]
    count = json.loads((folder / "records.json").read_text())["result"]["count"]
    assert 2000 < count < 4000
    assert [charge.purpose for charge in Ledger.open(folder / "ledger.jsonl").charges] == list(STAGES)
