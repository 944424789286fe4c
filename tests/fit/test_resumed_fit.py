"""Fits resumed with other settings, or from a changed ledger or checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fit.interruption import (
    DATA,
    HARMLESS,
    LOSSY,
    SCHEMA,
    STAGES,
    fit,
    interrupt_fit,
    list_spent,
    prepare,
    shared_or_not,
    stop,
)

from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, LedgerError, SundogError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers")


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


def test_a_fit_is_not_resumed_with_other_public_records(tmp_path: Path) -> None:
    out, _ = prepare(tmp_path, shared=False)
    schema = Schema.from_dict(
        {"columns": {**SCHEMA.to_dict()["columns"], "s": {"type": "set", "universe": ["x"], "max_size": 1}}}
    )
    data = {**DATA, "s": [["x"]] * 3000}
    public = {"n": [1, 2, 3], "b": [True, False, True], "s": [["x"], [], []]}
    options: dict[str, Any] = {"model": "marginals", "schema": schema, "data": data}
    interrupt_fit(out, None, stop(Checkpoint, "save_tensors", after=True), public=public, **options)
    before = list_spent(out, None)
    for other in ({"n": [1, 2, 4]}, {"s": [["x"], [], ["x"]]}):
        with pytest.raises(DataError, match="public data is not what the interrupted fit began with"):
            fit(out, None, resume=True, public={**public, **other}, **options)
    assert list_spent(out, None) == before
    assert fit(out, None, resume=True, public=public, **options).verify() == []
