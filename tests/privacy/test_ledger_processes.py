"""The ledger loses no spend across threads, processes and crashes."""

import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from tests.privacy.charges import DELTA, charge, charge_pure

from sundog.errors import BudgetExceededError, LedgerError
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import (
    Gaussian,
)
from sundog.privacy.journal import Journal
from sundog.privacy.ledger import Ledger

# --- at the same time -----------------------------------------------------------------------------------------------

NOISE = 30.0


def count_that_fit(epsilon: float) -> int:
    fits = 0
    while compute_epsilon([charge(Gaussian(noise_multiplier=NOISE), fits + 1)], delta=DELTA) <= epsilon:
        fits += 1
    return fits


@pytest.mark.parametrize("kind", ["memory", "file", "file opened by each", "runs"])
def test_threads_never_exceed_the_total_and_lose_no_spend(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    shared = Ledger(epsilon=1.0, delta=DELTA)
    if kind.startswith("file"):
        shared = Ledger.create(path, epsilon=1.0, delta=DELTA)
    accepted: list[str] = []

    def work(name: str) -> None:
        mine = shared
        if kind == "file opened by each":
            mine = Ledger.open(path)
        elif kind == "runs":
            mine = shared.run(epsilon=1.0, delta=DELTA)
        for number in range(10):
            purpose = f"{name} {number}"
            try:
                mine.spend(charge(Gaussian(noise_multiplier=NOISE), purpose=purpose))
            except BudgetExceededError:
                continue
            accepted.append(purpose)

    threads = [threading.Thread(target=work, args=(str(name),)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted) == min(80, count_that_fit(1.0)) < 80
    assert sorted(charge.purpose for charge in shared.charges) == sorted(accepted)
    assert shared.compute_spent() <= 1.0


WORKER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from sundog.errors import BudgetExceededError
    from sundog.privacy.events import Charge, Gaussian
    from sundog.privacy.ledger import Ledger

    path, name, attempts, noise = sys.argv[1:]
    ledger = Ledger.open(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(attempts)):
        charge = Charge(event=Gaussian(noise_multiplier=float(noise)), purpose=f"{name} {number}")
        try:
            ledger.spend(charge)
        except BudgetExceededError:
            continue
        print(charge.purpose, flush=True)
    """
)


def test_processes_never_exceed_the_total_and_lose_no_spend(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    epsilon = 1.7
    Ledger.create(path, epsilon=epsilon, delta=DELTA)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(name), "50", str(NOISE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    acknowledged = [line for worker in workers for line in worker.communicate(timeout=600)[0].splitlines()]
    assert all(worker.returncode == 0 for worker in workers)
    ledger = Ledger.open(path)
    recorded = [charge.purpose for charge in ledger.charges]
    assert len(set(recorded)) == len(recorded)
    assert sorted(recorded) == sorted(acknowledged)
    assert len(recorded) == count_that_fit(epsilon) < 200
    assert len({entry.run for entry in ledger.entries}) > 1
    assert ledger.compute_spent() <= epsilon


# --- crashes --------------------------------------------------------------------------------------------------------

CRASHES = textwrap.dedent(
    """
    import os, random, signal, sys, time
    from sundog.privacy.events import Charge, Gaussian
    from sundog.privacy.ledger import Ledger

    path = sys.argv[1]
    for life in range(30):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            ledger = Ledger.open(path)
            number = 0
            while True:
                charges = [
                    Charge(event=Gaussian(noise_multiplier=1e5), purpose=f"{life} {number} {part}" + "." * 150)
                    for part in range(3)
                ]
                ledger.spend(*charges)
                os.write(writer, f"{life} {number}\\n".encode())
                number += 1
        os.close(writer)
        with os.fdopen(reader) as file:
            acknowledged = "".join(file.readline() for _ in range(life % 3))
            time.sleep(random.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged += file.read()
        if not acknowledged.endswith("\\n"):
            acknowledged = acknowledged[: acknowledged.rfind("\\n") + 1]
        Ledger.open(path).entries  # raises if the file was spoiled
        sys.stdout.write(acknowledged)
    """
)


def test_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA)
    done = subprocess.run([sys.executable, "-c", CRASHES, str(path)], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    acknowledged = set(done.stdout.splitlines())
    parts = [charge.purpose.rstrip(".").rsplit(" ", 1) for charge in Ledger.open(path).charges]
    recorded: dict[str, list[str]] = {}
    for spend, part in parts:
        recorded.setdefault(spend, []).append(part)
    assert len(acknowledged) >= 30
    assert acknowledged <= set(recorded)
    assert all(found == ["0", "1", "2"] for found in recorded.values())
    assert len(set(recorded) - acknowledged) <= 30  # at most the one that each life was busy with


def test_a_torn_entry_is_as_if_it_had_never_been(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(charge_pure(0.3, "kept"))
    kept = path.read_bytes()
    ledger.spend(charge_pure(0.3, "torn"))
    data = path.read_bytes()
    path.write_bytes(kept)
    Ledger.open(path)
    for end in range(len(kept) + 1, len(data) - 1, 7):
        path.write_bytes(data[:end])
        with pytest.warns(UserWarning, match="the last line is incomplete"):
            again = Ledger.open(path)
        assert [charge.purpose for charge in again.charges] == ["kept"]
        again.spend(charge_pure(0.6, "after"))
        assert [charge.purpose for charge in Ledger.open(path).charges] == ["kept", "after"]


def test_charges_made_together_are_torn_together(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(charge_pure(0.1))
    before = path.read_bytes()
    ledger.spend(charge_pure(0.1), charge_pure(0.2), charge_pure(0.3))
    after = path.read_bytes()
    for end in range(len(before) + 1, len(after) - 1):
        path.write_bytes(after[:end])
        with pytest.warns(UserWarning, match="the last line is incomplete"):
            assert len(Ledger.open(path).charges) == 1


def test_a_charge_whose_newline_was_cut_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(charge_pure(0.7, "paid"))
    path.write_bytes(path.read_bytes()[:-1])
    again = Ledger.open(path)
    assert again.compute_spent() == pytest.approx(0.7, rel=1e-3)
    with pytest.raises(BudgetExceededError):
        again.spend(charge_pure(0.7))
    again.spend(charge_pure(0.2, "after"))
    for opened in (again, ledger, Ledger.open(path)):
        assert [charge.purpose for charge in opened.charges] == ["paid", "after"]


def test_an_edited_last_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(charge_pure(0.7))
    edited = path.read_bytes().replace(b"0.7", b"0.1")
    for content in (edited, edited[:-1]):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="line 2 was edited"):
            Ledger.open(path)


@pytest.mark.parametrize("digest", [False, True])
def test_a_ledger_of_a_development_version_is_refused_in_one_line(digest: bool, tmp_path: Path) -> None:
    """Its lines have no digests, or its header has no id."""
    path = tmp_path / "ledger"
    header = {"format": "sundog-ledger", "version": 1, "epsilon": 1.0, "delta": DELTA, "created": "2026-01-01"}
    if digest:
        Journal.create(path, header)
    else:
        path.write_text(json.dumps({**header, "chain": ""}) + "\n")
    with pytest.raises(LedgerError, match="made by a development version of sundog; start a new ledger"):
        Ledger.open(path)
