"""Sources that record and replay: they change nothing, are never private, and keep the secret numbers of records."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from tests.auditing.replay.replay_cases import TABLE, TABLE_SCHEMA

from sundog.auditing.replay.loss_randomness import LossRandomness
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.draws import PairingDraw, RowsDraw
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_count
from sundog.privacy.noise import NoiseSource
from sundog.privacy.transcript import RecordingSource, ReplayDivergenceError, ReplayingSource, Transcript
from sundog.training.batches.poisson import draw_poisson_batch


def fit(noise: NoiseSource) -> Synthesizer:
    return Synthesizer("marginals", epsilon=1.0, delta=1e-6, seed=0, noise=noise).fit(TABLE, TABLE_SCHEMA)


def test_recording_changes_nothing() -> None:
    """Noise is that of a seeded source, draw for draw."""
    transcript = Transcript()
    releases = [fit(noise).release_ for noise in (NoiseSource.seeded(3), RecordingSource(3, transcript))]
    first, second = (release.model.state().tensors for release in releases)
    assert all(np.array_equal(tensor, second[name]) for name, tensor in first.items())
    assert transcript.events
    assert not transcript.unseen


def test_nothing_that_was_recorded_is_private() -> None:
    synth = fit(RecordingSource(0, Transcript()))
    assert not synth.release_.certificate.private
    assert synth.release_.verify()
    assert "NOT PRIVATE" in str(synth.release_.certificate)


def test_noise_outside_of_a_mechanism_is_noted() -> None:
    transcript = Transcript()
    source = RecordingSource(0, transcript)
    source.discrete_gaussian(sigma=1.0, size=2)
    assert transcript.unseen


def replay(before: Transcript, added: tuple[int, ...]) -> ReplayingSource:
    return ReplayingSource(0, Transcript(), before, added)


def test_what_was_released_is_released_again() -> None:
    transcript = Transcript()
    source = RecordingSource(0, transcript)
    for count, again in ((5, source), (900, replay(transcript, ()))):
        ledger = Ledger(epsilon=1.0, delta=1e-6, noise=again)
        noisy_count(count, epsilon=0.5, ledger=ledger, purpose="a count")
    first, second = (each.transcript.released[()][0] for each in (source, again))
    assert first.value == second.value
    assert (int(first.draw.exact[0]), int(second.draw.exact[0])) == (5, 900)  # type: ignore[union-attr]


@pytest.mark.parametrize("epsilon", [0.5, 0.25])
def test_another_draw_is_a_divergence(epsilon: float) -> None:
    transcript = Transcript()
    ledgers = [Ledger(epsilon=1.0, delta=1e-6, noise=each) for each in (RecordingSource(0, transcript), None)]
    noisy_count(5, epsilon=0.5, ledger=ledgers[0], purpose="a count")
    ledgers[1].noise = replay(transcript, ())
    if epsilon == 0.5:
        noisy_count(5, epsilon=0.5, ledger=ledgers[1], purpose="a count")
    with pytest.raises(ReplayDivergenceError):
        noisy_count(5, epsilon=0.25, ledger=ledgers[1], purpose="a count")


def test_batches_keep_their_common_records() -> None:
    transcript = Transcript()
    source = RecordingSource(0, transcript)
    batches = [draw_poisson_batch(20, 0.1, source) for _ in range(50)]
    assert min(map(len, batches)) == 0  # with this seed
    again = replay(transcript, (3,))
    replayed = [draw_poisson_batch(21, 0.1, again) for _ in range(50)]
    for before, after in zip(batches, replayed, strict=True):
        common = after[after != 3]
        assert (common - (common > 3)).tolist() == before.tolist()
        assert len(before) or 3 in after
    assert 10 < sum(3 in batch for batch in replayed) < 45


@pytest.mark.parametrize("count", [8, 9])
@pytest.mark.parametrize("added", [0, 4, 8])
def test_an_added_record_changes_one_pair(count: int, added: int) -> None:
    for seed in range(20):
        transcript = Transcript()
        order = RecordingSource(seed, transcript).hide(
            PairingDraw(count), functools.partial(np.random.default_rng(seed).permutation, count)
        )
        found = replay(transcript, (added,)).hide(PairingDraw(count + 1), lambda: np.zeros(0, np.int64))
        assert sorted(found) == list(range(count + 1))
        pairs = [{*pair} for pair in order[: count // 2 * 2].reshape(-1, 2).tolist()]
        renamed = [[n - (n > added) if n != added else -1 for n in pair] for pair in _pair_up(found)]
        changed = [pair for pair in renamed if {*pair} not in pairs]
        assert len(changed) <= 1
        assert all(-1 in pair for pair in changed)


def _pair_up(order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[list[int]]:
    return [[int(n) for n in pair] for pair in order[: len(order) // 2 * 2].reshape(-1, 2)]


def test_rows_stay_those_of_their_records() -> None:
    transcript = Transcript()
    source, rng = RecordingSource(0, transcript), np.random.default_rng(0)
    rows = source.hide(RowsDraw(np.array([0, 2])), lambda: rng.random((2, 3)))
    others = source.hide(RowsDraw(np.array([1])), lambda: rng.random((1, 3)))
    again = replay(transcript, (1,))
    found = again.hide(RowsDraw(np.array([0, 1, 3])), lambda: rng.random((3, 3)))
    assert np.array_equal(found[[0, 2]], rows)
    assert np.array_equal(again.hide(RowsDraw(np.array([2])), lambda: rng.random((1, 3))), others)


def test_a_loss_draws_the_same_for_common_places() -> None:
    def draw(*shape: int) -> torch.Tensor:
        transcript = Transcript()
        transcript.loss = ("training", "loss", 0)
        with LossRandomness(transcript):
            return torch.cat([torch.randn(*shape), torch.rand_like(torch.zeros(shape))], dim=-1)

    assert torch.equal(draw(4, 3), draw(5, 3)[:4])
    assert torch.equal(draw(2, 4, 3), draw(2, 5, 3)[:, :4])  # a stack of models
    flat = draw(400, 50)
    assert abs(float(flat[:, :50].mean())) < 0.05
    assert abs(float(flat[:, 50:].mean()) - 0.5) < 0.02


def test_other_numbers_stay_as_they_are() -> None:
    with LossRandomness(Transcript()):
        torch.manual_seed(0)
        first = torch.randn(3)
    torch.manual_seed(0)
    assert torch.equal(first, torch.randn(3))
