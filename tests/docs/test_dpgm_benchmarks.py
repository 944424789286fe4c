"""Parts of the benchmarks of mixtures: the papers' accountant, and the marginals of the baseline."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.analytic_gaussian import compute_gaussian_epsilon
from sundog.privacy.calibration import make_training_charges
from sundog.privacy.events import Charge, Gaussian

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _among_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def test_the_accountant_of_the_papers_gives_their_epsilon() -> None:
    from dpgm.accounting import MNIST_EPSILON, Setting, compute_our_epsilon, compute_papers_epsilons

    (stated,) = compute_papers_epsilons(Setting(), [20])
    assert round(stated, 2) == MNIST_EPSILON
    for setting in (Setting(), Setting(sigma_k=40), Setting(sigma_g=4), Setting(sample_rate=0.01)):
        for epochs, theirs in zip((1, 20), compute_papers_epsilons(setting, [1, 20]), strict=True):
            assert compute_our_epsilon(setting, epochs) < 0.8 * theirs


@pytest.mark.parametrize(("rate", "sigma"), [(0.0017, 1.0), (0.0017, 4.0), (0.01, 1.5), (0.5, 2.0)])
def test_integrated_moments_are_those_of_the_moments_accountant(rate: float, sigma: float) -> None:
    from dpgm.accounting import DELTA, LAMBDAS, compute_sampled_moments

    moments = compute_sampled_moments(sample_rate=rate, sigma=sigma, lambdas=LAMBDAS)
    plan = make_training_charges(noise_multiplier=sigma, sample_rate=rate, steps=500)
    expected = compute_epsilon(plan, delta=DELTA, method="moments")
    assert np.min((500 * moments - np.log(DELTA)) / LAMBDAS) == pytest.approx(expected, rel=1e-6)


def test_their_clustering_is_a_gaussian_of_multiplier_sigma_k() -> None:
    from dpgm.accounting import DELTA, ITERATIONS, Setting, compute_papers_epsilons

    charge = Charge(event=Gaussian(noise_multiplier=15.0), count=ITERATIONS, purpose="k-means")
    expected = compute_epsilon([charge], delta=DELTA, method="moments")
    assert compute_papers_epsilons(Setting(sigma_k=15.0), [0]) == [pytest.approx(expected)]


def test_rho_is_the_largest_within_the_budget() -> None:
    from dpgm.mwem import zcdp_rho

    for epsilon, delta in ((0.5, 1e-6), (1.0, 1e-8), (4.0, 1e-5)):
        gaussian = (2 * zcdp_rho(epsilon=epsilon, delta=delta)) ** -0.5
        assert 0.8 * epsilon < compute_gaussian_epsilon(noise_multiplier=gaussian, delta=delta) < epsilon


@pytest.mark.parametrize("size", [1, 2, 3])
def test_marginals_equal_those_counted_record_by_record(size: int) -> None:
    from dpgm.mwem import compute_marginals, count_together

    dense = (np.random.default_rng(0).random((200, 5)) < 0.4).astype(np.uint8)
    cliques = np.array(list(itertools.combinations(range(5), size)))
    found = compute_marginals(count_together(sparse.csr_array(dense)), 200, cliques)
    for clique, cells in zip(cliques, found, strict=True):
        places = dense[:, clique] @ (2 ** np.arange(size)[::-1])  # the last item varies fastest, as in mbi
        assert cells.tolist() == np.bincount(places, minlength=2**size).tolist()


def test_the_baseline_chooses_by_score_and_keeps_its_tree_narrow() -> None:
    from dpgm.mwem import MWEM, Plan, Tree

    run = MWEM(None, 4, 1.0, 1e-6, Plan(6, width=1), np.random.default_rng(0))
    pairs = np.array(list(itertools.combinations(range(4), 2)))  # 01 02 03 12 13 23
    scores, tree = [np.array([9.0, 8.0, 1.0, 7.0, 2.0, 3.0])], Tree(4, width=1)
    taken: list[tuple[int, int]] = []
    for _ in range(6):
        taken += run._choose(scores, [pairs], tree, taken, epsilon=1e3)
    assert taken == [(0, 0), (0, 1), (0, 5)]  # 12, 13 and 03 would close a cycle
    often = [run._choose(scores, [pairs], Tree(4, width=1), [], epsilon=2.0)[0][1] for _ in range(2000)]
    logits = scores[0] - np.logaddexp.reduce(scores[0])  # ε / 2 times the score
    expected = 2000 * np.exp(logits)
    assert np.abs(np.bincount(often, minlength=6) - expected).max() < 5 * np.sqrt(expected.max() / 4) + 5
