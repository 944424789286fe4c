"""MWEM+PGM (McKenna, Sheldon and Miklau 2019) on sets, through mbi: the baseline that measures chosen marginals.

It gets every improvement that keeps it private. Item counts are measured first, with the sensitivity of a capped set
instead of that of one table per item. The workload is all pairs, and optionally triples. Rounds are taken in batches,
so that the model is fitted once a batch, not once a round. A marginal that would make the junction tree too wide is
skipped: by the Gumbel trick, the first that fits is a draw of the exponential mechanism among those that fit. The
budget is in ρ (zCDP), a tenth of each round for selection, as in its authors' code.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from networkx.algorithms.approximation import treewidth_min_degree
from scipy import optimize, sparse

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FIRST = 0.2  # the share of ρ for item counts
SELECTION = 0.1  # the share of a round's ρ for choosing what to measure
BATCHES = 4  # of rounds; the model is fitted after each
ITERATIONS = 1000  # of mirror descent
DRAWN = 100_000  # records of the model, to estimate its marginals for the selection


def has_mbi() -> bool:
    return importlib.util.find_spec("mbi") is not None


def zcdp_rho(*, epsilon: float, delta: float) -> float:
    """Return the largest ρ that is (ε, δ)-DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""

    def spent(rho: float) -> float:
        def at(order: float) -> float:
            return rho * order + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

        return float(optimize.minimize_scalar(at, bounds=(1.01, 1e4), method="bounded").fun)

    return float(optimize.brentq(lambda rho: spent(rho) - epsilon, 1e-9, epsilon))


def count_together(sets: Any) -> Floats:
    """Return how many sets hold items i, j and k, for all three; with i = j = k, how many hold i."""
    dense = sets.toarray().astype(np.float32)
    together = []
    for item in range(dense.shape[1]):
        holders = dense[dense[:, item] > 0]
        together.append(holders.T @ holders)
    return np.array(together, np.float64)


def compute_marginals(together: Floats, total: float, cliques: Integers) -> Floats:
    """Return the marginal of each clique of one, two or three items, flat, from the counts of those held together."""
    size = cliques.shape[1]
    cells = []
    for pattern in itertools.product((0, 1), repeat=size):
        inside = [place for place in range(size) if pattern[place]]
        outside = [place for place in range(size) if not pattern[place]]
        cell = np.zeros(len(cliques))
        for more in itertools.chain.from_iterable(itertools.combinations(outside, n) for n in range(len(outside) + 1)):
            items = [cliques[:, place] for place in (*inside, *more)]
            held = together[tuple((items * 3)[:3]) if len(items) != 2 else (items[0], *items)] if items else total
            cell += (-1) ** len(more) * held
        cells.append(cell)
    return np.stack(cells, axis=1)


@dataclass(frozen=True)
class Plan:
    """The number of marginals to measure, their size, and the largest width of the junction tree."""

    rounds: int
    ways: tuple[int, ...] = (2,)
    width: int = 9  # cliques of ten items, 1,024 cells


class Tree:
    """The cliques measured so far, which knows whether another would make their junction tree too wide."""

    def __init__(self, items: int, width: int) -> None:
        self._graph = nx.empty_graph(items)
        self._width = width
        self._too_wide: set[tuple[int, ...]] = set()  # these stay too wide when others are added

    def add(self, clique: tuple[int, ...]) -> bool:
        """Add the clique if it fits."""
        edges = list(itertools.combinations(clique, 2))
        if clique in self._too_wide:
            return False
        if all(self._graph.has_edge(*edge) for edge in edges):
            return True
        wider = self._graph.copy()
        wider.add_edges_from(edges)
        if treewidth_min_degree(wider)[0] > self._width:
            self._too_wide.add(clique)
            return False
        self._graph = wider
        return True


@dataclass(frozen=True)
class MWEM:
    """A run on sets of at most `largest` items."""

    sets: Any
    largest: int
    epsilon: float
    delta: float
    plan: Plan
    rng: np.random.Generator

    def run(self, count: int) -> Any:
        """Draw records from the final model, as a sparse array."""
        os.environ.update(JAX_ENABLE_X64="1", JAX_ENABLE_COMPILATION_CACHE="0")  # as mbi requires
        from mbi import Domain, LinearMeasurement
        from mbi.estimation import MirrorDescent

        items = self.sets.shape[1]
        domain = Domain(tuple(range(items)), (2,) * items)
        rho = zcdp_rho(epsilon=self.epsilon, delta=self.delta)
        together = count_together(self.sets)
        total, counts = self._count(together, FIRST * rho)
        sigma = self._first_sigma(FIRST * rho)
        found = [LinearMeasurement(np.array([total - c, c]), (i,), sigma) for i, c in enumerate(counts)]
        model = MirrorDescent().estimate(domain, found, known_total=total, iters=ITERATIONS)
        candidates = [np.array(list(itertools.combinations(range(items), n)), np.int64) for n in self.plan.ways]
        truth = [compute_marginals(together, self.sets.shape[0], cliques) for cliques in candidates]
        tree = Tree(items, self.plan.width)
        each = (1 - FIRST) * rho / self.plan.rounds
        sigma = math.sqrt(1 / (2 * (1 - SELECTION) * each))
        for batch in np.array_split(np.arange(self.plan.rounds), min(BATCHES, self.plan.rounds)):
            scores = self._scores(model, total, candidates, truth, sigma)
            taken: list[tuple[int, int]] = []
            for _ in batch:
                taken += self._choose(scores, candidates, tree, taken, math.sqrt(8 * SELECTION * each))
            for way, place in taken:
                noisy = truth[way][place] + self.rng.normal(0, sigma, truth[way].shape[1])
                found.append(LinearMeasurement(noisy, tuple(candidates[way][place].tolist()), sigma))
            model = MirrorDescent().estimate(domain, found, known_total=total, iters=ITERATIONS, warm_start=model)
        return _to_sparse(model, count)

    def _first_sigma(self, rho: float) -> float:
        return math.sqrt((self.largest + 1) / (2 * rho))

    def _count(self, together: Floats, rho: float) -> tuple[float, Floats]:
        """Return noisy counts of all records and of each item; a set changes at most `largest` + 1 of them."""
        exact = np.append(np.einsum("iii->i", together), self.sets.shape[0])
        noisy = exact + self.rng.normal(0, self._first_sigma(rho), len(exact))
        total = max(1.0, float(noisy[-1]))
        return total, np.clip(noisy[:-1], 0, total)

    def _scores(self, model: Any, total: float, candidates: Any, truth: Any, sigma: float) -> list[Floats]:
        """Return the error of each marginal of the model, minus the expected error of noise alone."""
        drawn = count_together(_to_sparse(model, DRAWN)) * (total / DRAWN)
        noise = math.sqrt(2 / math.pi) * sigma
        return [
            np.abs(real - compute_marginals(drawn, total, cliques)).sum(axis=1) - noise * real.shape[1]
            for real, cliques in zip(truth, candidates, strict=True)
        ]

    def _choose(
        self, scores: list[Floats], candidates: Any, tree: Tree, taken: list[tuple[int, int]], epsilon: float
    ) -> list[tuple[int, int]]:
        """Select by the exponential mechanism among the marginals that fit and are not in this batch."""
        where = [(way, place) for way, each in enumerate(scores) for place in range(len(each))]
        logits = epsilon / 2 * np.concatenate(scores)
        for rank in np.argsort(-(logits + self.rng.gumbel(size=len(logits)))):
            way, place = where[rank]
            if where[rank] not in taken and tree.add(tuple(candidates[way][place].tolist())):
                return [where[rank]]
        return []


def _to_sparse(model: Any, count: int) -> Any:
    drawn = model.synthetic_data(count).to_dict()
    return sparse.csr_array(np.stack([drawn[item] for item in sorted(drawn)], axis=1).astype(np.uint8))
