"""The messages of a training: progress and spending, and the loss only on request."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.training.toy import DELTA, PLAN, collect_tensors, make_ledger, make_toy

from sundog.cli import console
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.training.progress_messages import format_duration


def list_messages(ledger: Ledger, **options: Any) -> list[tuple[str, float]]:
    said: list[tuple[str, float]] = []
    trained = make_toy(ledger, progress=lambda stage, done: said.append((stage, done)), **options)
    trained.trainer.run()
    return said


@pytest.fixture
def chatty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundog.training.progress_messages._INTERVAL", 0.0)


@pytest.mark.usefixtures("chatty")
def test_it_says_how_far_it_is_and_what_was_spent() -> None:
    ledger = make_ledger()
    ledger.spend(Charge(event=Pure(epsilon=0.1), purpose="before"))
    said = list_messages(ledger, block=4)
    assert len(said) == PLAN.steps + 1
    pattern = r"training: step (\d+) of 12, ε ≈ ([\d.]+) so far, \d+ s left"
    spent = {}
    for (text, done), step in zip(said, [*range(1, 13), 12], strict=True):
        found = re.fullmatch(pattern, text)
        assert found is not None, text
        assert int(found[1]) == step
        assert done == pytest.approx(step / 12)
        spent[step] = float(found[2])
    before = [Charge(event=Pure(epsilon=0.1), purpose="before")]
    for step in (4, 8, 12):
        assert spent[step] == pytest.approx(compute_epsilon([*before, PLAN.make_charge(step)], delta=DELTA), rel=0.03)


def test_it_says_something_a_few_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundog.training.progress_messages._INTERVAL", 1e9)
    assert [done for _, done in list_messages(make_ledger())] == [1 / PLAN.steps, 1.0]  # the beginning and the end


@pytest.mark.usefixtures("chatty")
def test_the_loss_is_neither_shown_nor_computed() -> None:
    calls = []
    for show in (False, True):
        said: list[str] = []
        trained = make_toy(
            make_ledger(),
            progress=lambda text, _: said.append(text),  # noqa: B023
            show_loss=show,
            largest_piece=4096,
        )
        loss, count = trained.trainer.step.private_loss, 0

        def counted(batch: Any, loss: Any = loss) -> Any:
            nonlocal count
            count += 1
            return loss(batch)

        trained.trainer.step.private_loss = counted
        trained.trainer.run()
        calls.append(count)
        assert any("loss" in text for text in said) == show
        assert all("NOT PRIVATE" in text for text in said[:-1]) == show
    assert calls == [PLAN.steps, 2 * PLAN.steps]


def test_showing_the_loss_changes_nothing_else() -> None:
    results = []
    for show in (False, True):
        trained = make_toy(make_ledger(noise=NoiseSource.seeded(3)), show_loss=show, progress=lambda *_: None)
        trained.trainer.run()
        results.append(collect_tensors(trained))
    assert results[0] == results[1]


def test_plain_output_has_one_line_for_a_training(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sundog.training.progress_messages._INTERVAL", 0.0)
    for every, lines in ((30.0, 1), (0.0, PLAN.steps + 1)):
        monkeypatch.setattr(console, "_EVERY", every)
        with console.show_progress() as report:
            report("planning", 0.0)
            make_toy(make_ledger(), progress=report).trainer.run()
            report("saving", 0.0)
        said = capsys.readouterr().err.splitlines()
        training = [line for line in said if line.startswith("training: ")]
        assert len(training) == lines
        assert re.fullmatch(r"training: \d+\.\d s", training[-1])
        assert [line.partition(":")[0] for line in said if line not in training] == ["planning", "saving"]


def test_durations_are_readable() -> None:
    assert [format_duration(s) for s in (0.2, 59, 119.6, 150, 7300)] == ["0 s", "59 s", "120 s", "2 min", "2 h"]
