"""The file of a ledger: it is read as it was written, and refused when it is damaged or cut."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.privacy.charges import DELTA, charge, charge_pure

from sundog.errors import BudgetExceededError, LedgerError
from sundog.privacy.events import (
    DiscreteGaussian,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
)
from sundog.privacy.journal import Journal
from sundog.privacy.ledger import Budget, Entry, Head, Ledger

# --- the file -------------------------------------------------------------------------------------------------------


def test_a_file_says_everything_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=2.0, delta=DELTA)
    events: list[Event] = [
        Gaussian(noise_multiplier=9.0),
        SampledGaussian(noise_multiplier=1.1, sample_rate=0.01),
        DiscreteGaussian(sigma=20.0),
        Pure(epsilon=0.1),
        Failure(delta=1e-7),
    ]
    ledger.spend(*(charge(event, count, f"{count} × é\n\u2028") for count, event in enumerate(events, start=1)))
    again = Ledger.open(str(path))
    assert again.budget == Budget(2.0, DELTA)
    assert again.entries == ledger.entries
    assert again.to_dict() == ledger.to_dict()
    assert json.loads(json.dumps(again.to_dict())) == again.to_dict()
    assert [Entry.model_validate_json(entry.model_dump_json()) for entry in again.entries] == list(again.entries)


def test_two_openings_spend_from_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    one = Ledger.create(path, epsilon=1.0, delta=DELTA)
    other = Ledger.open(path)
    one.spend(charge_pure(0.6))
    with pytest.raises(BudgetExceededError):
        other.spend(charge_pure(0.6))
    other.spend(charge_pure(0.3))
    assert len(one.entries) == len(other.entries) == 2


def test_a_run_of_two_processes_has_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    mine = Ledger.create(path, epsilon=1.0, delta=DELTA).run(epsilon=0.5, delta=DELTA, name="fit")
    spend = textwrap.dedent(
        """
        import sys
        from sundog.privacy.events import Charge, Pure
        from sundog.privacy.ledger import Ledger
        run = Ledger.open(sys.argv[1]).run(epsilon=0.5, delta=1e-5, name="fit")
        run.spend(Charge(event=Pure(epsilon=0.3), purpose="elsewhere"))
        """
    )
    subprocess.run([sys.executable, "-c", spend, str(path)], check=True)
    assert [charge.purpose for charge in mine.charges] == ["elsewhere"]
    with pytest.raises(BudgetExceededError, match=r"0\.3 was spent before"):
        mine.spend(charge_pure(0.3))
    assert len(Ledger.open(path).entries) == 1


def test_creating_never_replaces(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(charge_pure(0.6))
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, epsilon=9.0, delta=DELTA)
    assert Ledger.open(path).budget.epsilon == 1.0


GOOD: dict[str, Any] = {"format": "sundog-ledger", "version": 1, "epsilon": 1.0, "delta": 1e-5, "created": "now"}


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"format": "other", "version": 1},
        GOOD | {"format": "sundog"},
        GOOD | {"version": 2},
        GOOD | {"version": "1"},
        {key: value for key, value in GOOD.items() if key != "epsilon"},
        {key: value for key, value in GOOD.items() if key != "delta"},
        GOOD | {"epsilon": "lots"},
        GOOD | {"epsilon": None},
        GOOD | {"epsilon": [1.0]},
        GOOD | {"epsilon": -1.0},
        GOOD | {"epsilon": 0},
        GOOD | {"delta": 2.0},
        GOOD | {"delta": {}},
    ],
    ids=repr,
)
def test_what_is_not_a_ledger_is_refused(tmp_path: Path, header: dict[str, Any]) -> None:
    path = tmp_path / "ledger"
    Journal.create(path, header)
    before = path.read_bytes()
    with pytest.raises(LedgerError) as caught:
        Ledger.open(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"no newline", b"a,b\n1,2\n", b"\x00" * 100, b"PK\x03\x04\n\n", b"{}\n"])
def test_a_file_that_is_no_ledger_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(LedgerError, match=r"cannot be opened|no such file"):
            Ledger.open(path)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"event": {"kind": "pure", "epsilon": 0.1}, "count": 1, "purpose": "x"},
        {
            "event": {"kind": "pure", "epsilon": -0.1},
            "count": 1,
            "purpose": "x",
            "run": "r",
            "private": True,
            "time": "",
        },
        {"event": {"kind": "new", "epsilon": 0.1}, "count": 1, "purpose": "x", "run": "r", "private": True, "time": ""},
        {"event": None, "count": 1, "purpose": "x", "run": "r", "private": True, "time": ""},
        {
            "event": {"kind": "pure", "epsilon": 0.1},
            "count": 0,
            "purpose": "x",
            "run": "r",
            "private": True,
            "time": "",
        },
    ],
    ids=repr,
)
def test_a_line_that_is_no_entry_is_refused_with_its_number(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(charge_pure(0.1))
    journal = Journal(path)
    with journal.lock():
        journal.append(entry)
    before = path.read_bytes()
    for use in (lambda: ledger.spend(charge_pure(0.1)), lambda: Ledger.open(path).compute_spent()):
        with pytest.raises(LedgerError, match="line 3"):
            use()
    assert path.read_bytes() == before


def test_damage_is_refused_before_a_spend(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    for number in range(3):
        ledger.spend(charge_pure(0.2, f"number {number}"))
    path.write_bytes(path.read_bytes().replace(b"0.2", b"0.1", 1))
    with pytest.raises(LedgerError, match="line 2 was edited"):
        Ledger.open(path)


def test_a_full_disk_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    run = ledger.run(epsilon=0.9, delta=DELTA)
    run.spend(charge_pure(0.3))
    before = path.read_bytes()

    def write(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(LedgerError, match="this charge was not made"):
            run.spend(charge_pure(0.2))
    assert path.read_bytes() == before
    assert len(run.entries) == len(ledger.entries) == 1
    run.spend(charge_pure(0.5))


# --- heads ----------------------------------------------------------------------------------------------------------


def test_a_head_is_had_until_the_file_is_cut_or_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(charge_pure(0.1, "one"))
    kept = path.read_bytes()
    ledger.spend(charge_pure(0.1, "two"))
    head = ledger.head
    assert head is not None
    assert head.lines == 3
    ledger.spend(charge_pure(0.1, "three"))
    assert ledger.has(head)
    assert Ledger.open(path).has(head)
    path.write_bytes(kept)
    assert not Ledger.open(path).has(head)
    Ledger.open(path).spend(charge_pure(0.01, "two"))  # as many lines as before, all of them consistent
    assert not Ledger.open(path).has(head)


def test_a_ledger_in_memory_has_no_head() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    assert ledger.head is None
    assert not ledger.has(Head("", 1, "x"))
