"""The noise has the scale it should: each test accepts the right one and rejects two thirds and three halves of it.

The noise is real, without seeds. A right sampler fails an assertion of this file less than once in a million runs
(every p-value is held against ALARM), and a sample is large enough that the wrong scales are off by many times that.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import (
    exponential_mechanism,
    gaussian_sum,
    noisy_bounds,
    noisy_count,
    noisy_histogram,
    noisy_max,
    noisy_quantiles,
    noisy_tree,
    stable_set,
)
from sundog.privacy.mechanisms.selection import compute_stable_threshold
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Pmf = dict[int, float]

ALARM = 1e-9
WRONG = (2 / 3, 3 / 2)
SOURCE = NoiseSource()


class Free(Ledger):
    """Takes any charge without thinking: what is charged is tested elsewhere, and here there are many."""

    def spend(self, *charges: Charge) -> None:
        pass


FREE = Free(epsilon=1.0, delta=1e-5, noise=SOURCE)


# --- the tests' own statistics --------------------------------------------------------------------------------------


def p_value(sample: Iterable[int], pmf: Pmf) -> float:
    """Of a sample of integers under exact probabilities.

    Values that are expected often enough get a chi-square test, and all others together an exact binomial one.
    """
    counts = Counter(int(value) for value in sample)
    n = sum(counts.values())
    common = {key: n * p for key, p in pmf.items() if n * p >= 40}
    inside = sum(counts[key] for key in common)
    rare = min(1.0, max(0.0, 1 - sum(common.values()) / n))
    p = float(stats.binomtest(n - inside, n, rare).pvalue)
    if len(common) > 1 and inside:
        shrunk = inside / sum(common.values())
        statistic = sum((counts[key] - e * shrunk) ** 2 / (e * shrunk) for key, e in common.items())
        p = min(p, float(stats.chi2.sf(statistic, len(common) - 1)))
    return p


def proportions(observed: list[int], trials: int, probabilities: list[float]) -> float:
    """The p-value of several proportions, each of as many trials."""
    seen = [part for o in observed for part in (o, trials - o)]
    awaited = [part for p in probabilities for part in (trials * p, trials * (1 - p))]
    statistic = sum((o - e) ** 2 / e for o, e in zip(seen, awaited, strict=True))
    return float(stats.chi2.sf(statistic, len(observed)))


def check(p: Callable[[float], float]) -> None:
    """Accepts scale 1 and rejects the wrong ones, for p-values as a function of the scale."""
    assert p(1.0) > ALARM
    for scale in WRONG:
        assert p(scale) < ALARM


def discrete_gaussian(sigma: float) -> Pmf:
    bound = math.ceil(40 * sigma)
    k = np.arange(-bound, bound + 1)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    return dict(zip(k.tolist(), (weights / weights.sum()).tolist(), strict=True))


def discrete_laplace(rate: float) -> Pmf:
    bound = math.ceil(60 / rate)
    k = np.arange(-bound, bound + 1)
    weights = np.exp(-rate * np.abs(k))
    return dict(zip(k.tolist(), (weights * math.tanh(rate / 2)).tolist(), strict=True))


def laplace_tail(k: int, rate: float) -> float:
    """P(noise ≥ k)."""
    if k <= 0:
        return 1 - laplace_tail(1 - k, rate)
    return math.exp(-rate * k) / (1 + math.exp(-rate))


def sum_of(draws: int, pmf: Pmf) -> Pmf:
    one = np.array([pmf[key] for key in sorted(pmf)])
    whole = one
    for _ in range(draws - 1):
        whole = np.convolve(whole, one)
    return dict(enumerate(whole.tolist(), start=draws * min(pmf)))


def test_the_statistics_can_fail() -> None:
    generator = np.random.default_rng(1)
    fair = generator.integers(0, 10, 5000)
    assert p_value(fair, dict.fromkeys(range(10), 0.1)) > 1e-4
    assert p_value(fair, dict.fromkeys(range(9), 1 / 9)) < ALARM
    assert p_value(fair, {k: (k + 5) / 95 for k in range(10)}) < ALARM


# --- raw samplers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5, 20.0])
def test_discrete_gaussian_has_the_exact_probabilities(sigma: float) -> None:
    sample = SOURCE.discrete_gaussian(sigma=sigma, size=200_000)
    check(lambda scale: p_value(sample, discrete_gaussian(scale * sigma)))


def test_discrete_gaussian_of_large_parameter() -> None:
    sample = SOURCE.discrete_gaussian(sigma=1000.0, size=(200, 1000)).ravel()

    def p(scale: float) -> float:
        binned: Counter[int] = Counter()
        for key, value in discrete_gaussian(scale * 1000.0).items():
            binned[key // 100] += value  # type: ignore[assignment]
        return p_value(sample // 100, dict(binned))

    check(p)
    assert p_value(sample % 2, {0: 0.5, 1: 0.5}) > ALARM
    assert p_value(sample % 7, dict.fromkeys(range(7), 1 / 7)) > ALARM


def test_discrete_gaussian_on_a_fine_lattice() -> None:
    sigma = 3.0 * 2**30
    sample = SOURCE.discrete_gaussian(sigma=sigma, size=50_000)
    check(lambda scale: float(stats.kstest(sample, stats.norm(scale=scale * sigma).cdf).pvalue))
    assert p_value(sample % 16, dict.fromkeys(range(16), 1 / 16)) > ALARM  # the last bits are noise too


@pytest.mark.parametrize("sigma", [1.0, 2.5, 20.0])
def test_discrete_gaussian_has_its_tails(sigma: float) -> None:
    n = 2_000_000
    pmf = discrete_gaussian(sigma)
    beyond = sum(value for key, value in pmf.items() if abs(key) > 4 * sigma)
    sample = SOURCE.discrete_gaussian(sigma=sigma, size=n)
    seen = int((np.abs(sample) > 4 * sigma).sum())
    assert n * beyond > 5
    assert stats.binomtest(seen, n, beyond).pvalue > ALARM
    if n * beyond > 30:
        for scale in WRONG:
            wrong = sum(value for key, value in discrete_gaussian(scale * sigma).items() if abs(key) > 4 * sigma)
            assert stats.binomtest(seen, n, wrong).pvalue < ALARM


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0, 3.0])
def test_discrete_laplace_has_the_exact_probabilities(rate: float) -> None:
    sample = SOURCE.discrete_laplace(epsilon=rate, size=100_000)
    check(lambda scale: p_value(sample, discrete_laplace(rate / scale)))


def test_discrete_laplace_has_its_tails() -> None:
    n = 2_000_000
    seen = int((np.abs(SOURCE.discrete_laplace(epsilon=1.0, size=n)) >= 10).sum())
    assert stats.binomtest(seen, n, 2 * laplace_tail(10, 1.0)).pvalue > ALARM
    for scale in WRONG:
        assert stats.binomtest(seen, n, 2 * laplace_tail(10, 1 / scale)).pvalue < ALARM


def test_gaussian_and_uniform() -> None:
    gaussian, uniform = SOURCE.gaussian((40, 500)).ravel(), SOURCE.uniform((40, 500)).ravel()
    check(lambda scale: float(stats.kstest(gaussian, stats.norm(scale=scale).cdf).pvalue))
    check(lambda scale: float(stats.kstest(uniform, stats.uniform(scale=scale).cdf).pvalue))


def test_permutations_are_uniform() -> None:
    orders = list(itertools.permutations(range(4)))
    sample = [orders.index(tuple(SOURCE.permutation(4).tolist())) for _ in range(6000)]
    assert p_value(sample, dict.fromkeys(range(24), 1 / 24)) > ALARM


@pytest.mark.parametrize(("log_probability", "n"), [(-0.1, 20_000), (-2.0, 20_000), (-10.0, 4_000_000)])
def test_coins_are_fair_into_the_tail(log_probability: float, n: int) -> None:
    heads = int(SOURCE.coin(np.full(n, log_probability)).sum())
    check(lambda scale: float(stats.binomtest(heads, n, math.exp(log_probability / scale)).pvalue))


def test_the_draws_of_one_call_are_independent() -> None:
    pairs = SOURCE.discrete_gaussian(sigma=0.8, size=(50_000, 2))
    pmf = discrete_gaussian(0.8)
    codes = np.clip(pairs, -3, 3) @ np.array([7, 1])
    clipped: Counter[int] = Counter()
    for a, b in itertools.product(range(-8, 9), repeat=2):
        clipped[7 * max(-3, min(3, a)) + max(-3, min(3, b))] += pmf[a] * pmf[b]  # type: ignore[assignment]
    assert p_value(codes, dict(clipped)) > ALARM


# --- mechanisms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contribution", [1, 4])
def test_noisy_count(contribution: int) -> None:
    epsilon = 0.8
    sample = [
        noisy_count(50, epsilon=epsilon, ledger=FREE, purpose="p", contribution=contribution) - 50 for _ in range(3000)
    ]
    check(lambda scale: p_value(sample, discrete_laplace(epsilon / contribution / scale)))


@pytest.mark.parametrize(("touched", "contribution"), [(1, 1), (5, 1), (1, 4), (3, 3)])
def test_noisy_histogram(touched: int, contribution: int) -> None:
    counts = np.arange(20_000)
    sigma = 1.7
    noisy = noisy_histogram(counts, sigma=sigma, ledger=FREE, purpose="p", touched=touched, contribution=contribution)
    sample = noisy - counts
    check(lambda scale: p_value(sample, sum_of(contribution, discrete_gaussian(scale * sigma))))
    # a sum of m draws has variance m·σ², to six standard errors
    assert sample.var() == pytest.approx(contribution * sigma**2, rel=6 * math.sqrt(2 / len(sample)))


def test_noisy_histogram_has_noise_of_its_own_in_each_cell() -> None:
    noise = noisy_histogram(np.zeros((2, 20_000), np.int64), sigma=5.0, ledger=FREE, purpose="p", contribution=2)
    correlation = float(np.mean(noise[0] * noise[1])) / float(noise.var())
    assert abs(correlation) < 6 / math.sqrt(20_000)


@pytest.mark.parametrize(
    ("clip_norm", "noise_multiplier", "contribution"), [(1.0, 1.0, 1), (0.02, 7.0, 1), (30.0, 0.2, 1), (2.0, 3.0, 5)]
)
def test_gaussian_sum(clip_norm: float, noise_multiplier: float, contribution: int) -> None:
    vectors = np.zeros((2, 20_000))
    vectors[0, 0] = clip_norm / 2
    noisy = gaussian_sum(
        vectors,
        clip_norm=clip_norm,
        noise_multiplier=noise_multiplier,
        ledger=FREE,
        purpose="p",
        contribution=contribution,
    )
    sample = noisy - vectors.sum(axis=0)
    deviation = noise_multiplier * clip_norm
    check(lambda scale: float(stats.kstest(sample, stats.norm(scale=scale * deviation).cdf).pvalue))


SCORES = np.array([3.0, 1.0, 4.5, 0.0])


def exponential_probabilities(epsilon: float, sensitivity: float) -> Pmf:
    likelihood = np.exp(epsilon * SCORES / (2 * sensitivity))
    return dict(enumerate((likelihood / likelihood.sum()).tolist()))


def test_exponential_mechanism() -> None:
    epsilon, sensitivity = 2.0, 1.5
    sample = [
        exponential_mechanism(SCORES, epsilon=epsilon, sensitivity=sensitivity, ledger=FREE, purpose="p")
        for _ in range(6000)
    ]
    check(lambda scale: p_value(sample, exponential_probabilities(epsilon / scale, sensitivity)))


def permute_and_flip_probabilities(scores: Floats, epsilon: float, sensitivity: float) -> Pmf:
    """By trying every order: the first head wins."""
    heads = np.exp((scores - scores.max()) * epsilon / (2 * sensitivity))
    found = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for item in order:
            found[item] += reached * heads[item]
            reached *= 1 - heads[item]
    return dict(enumerate((found / len(orders)).tolist()))


@pytest.mark.parametrize("scores", [SCORES, np.array([1.0, -2.0, 1.0, -0.5])], ids=["apart", "with a tie"])
def test_noisy_max_is_permute_and_flip(scores: Floats) -> None:
    epsilon, sensitivity = 2.0, 1.0
    sample = [
        noisy_max(scores, epsilon=epsilon, sensitivity=sensitivity, ledger=FREE, purpose="p") for _ in range(8000)
    ]
    check(lambda scale: p_value(sample, permute_and_flip_probabilities(scores, epsilon / scale, sensitivity)))


@pytest.mark.parametrize("contribution", [1, 3])
def test_stable_set(contribution: int) -> None:
    epsilon, delta, trials = 1.2, 1e-4, 4000
    rate = epsilon / contribution
    threshold = compute_stable_threshold(rate=rate, delta=delta, contribution=contribution)
    below = [3, 2, 1, 0, -1, -2, -3]  # how far the count is below the threshold
    counts = {(k, trial): threshold - k for k in below for trial in range(trials)}
    kept = stable_set(counts, epsilon=epsilon, delta=delta, ledger=FREE, purpose="p", contribution=contribution)
    assert kept == sorted(kept, key=repr)
    found = Counter(k for k, _ in kept)
    check(lambda scale: proportions([found[k] for k in below], trials, [laplace_tail(k, rate / scale) for k in below]))


@pytest.mark.parametrize("contribution", [1, 3])
def test_a_key_of_one_unit_is_published_as_rarely_as_was_charged(contribution: int) -> None:
    epsilon, delta, trials = 2.0, 0.06, 20_000
    counts = dict.fromkeys(range(trials), contribution)
    kept = stable_set(counts, epsilon=epsilon, delta=delta, ledger=FREE, purpose="p", contribution=contribution)
    assert len(kept) > 0
    assert stats.binomtest(len(kept), trials, delta / contribution, alternative="greater").pvalue > ALARM


def quantile_probabilities(codes: list[int], p: float, size: int, epsilon: float) -> Pmf:
    below = np.array([sum(code < c for code in codes) for c in range(size)])
    likelihood = np.exp(-epsilon / 2 * np.abs(below - p * len(codes)))
    return dict(enumerate((likelihood / likelihood.sum()).tolist()))


@pytest.mark.parametrize(("p", "contribution"), [(0.5, 1), (0.1, 1), (0.7, 2)])
def test_noisy_quantiles(p: float, contribution: int) -> None:
    codes, size, epsilon = [0, 2, 3, 3, 3, 5, 6, 9, 9, 11], 12, 1.5
    values = np.array(codes)
    sample = [
        noisy_quantiles(values, [p], size=size, epsilon=epsilon, ledger=FREE, purpose="p", contribution=contribution)[0]
        for _ in range(6000)
    ]
    check(lambda scale: p_value(sample, quantile_probabilities(codes, p, size, epsilon / contribution / scale)))


def test_several_quantiles_share_the_budget() -> None:
    codes, size, epsilon = [0, 2, 3, 3, 3, 5, 6, 9, 9, 11], 12, 3.0
    sample = [
        noisy_quantiles(np.array(codes), [0.5, 0.5], size=size, epsilon=epsilon, ledger=FREE, purpose="p")
        for _ in range(4000)
    ]
    both = [code for pair in sample for code in pair]
    check(lambda scale: p_value(both, quantile_probabilities(codes, 0.5, size, epsilon / 2 / scale)))


@pytest.mark.parametrize("contribution", [1, 3])
def test_noisy_bounds(contribution: int) -> None:
    """How often a magnitude whose count is near the threshold stands out."""
    epsilon, trials = 0.9, 2200
    rate, cells = epsilon / contribution, 194
    threshold = math.log(1000 * cells) / rate
    counts = [math.floor(threshold) + round(away / rate) for away in (-2.2, -1.4, 1.4, 2.2)]
    found = []
    for count in counts:
        values = np.full(count, 100.0)
        ranges = (
            noisy_bounds(values, epsilon=epsilon, ledger=FREE, purpose="p", contribution=contribution)
            for _ in range(trials)
        )
        found.append(sum(1 for pair in ranges if pair is not None and pair[0] <= 64 and pair[1] >= 128))
    needed = [math.floor(threshold) + 1 - count for count in counts]
    check(lambda scale: proportions(found, trials, [laplace_tail(k, rate / scale) for k in needed]))


@pytest.mark.parametrize("contribution", [1, 3])
def test_noisy_tree(contribution: int) -> None:
    """At each level, cut or not: an empty range of 60,000 has 245 parts, and the heaviest of them as many again."""
    sigma = 2.5
    seen: list[list[int]] = [[], []]
    for _ in range(120):
        root = noisy_tree(
            np.empty(0, np.int64),
            size=60_000,
            sigma=sigma,
            threshold=sigma,
            ledger=FREE,
            purpose="bins",
            contribution=contribution,
        )
        seen[0] += root.counts.tolist()
        seen[1] += [count for part in root.parts.values() for count in part.counts.tolist()]
    for sample in seen:
        check(lambda scale: p_value(sample, sum_of(contribution, discrete_gaussian(scale * sigma))))  # noqa: B023
