"""Marginals by the package `mbi` (private-pgm). Runs in an environment of its own, without sundog.

    python -m tabular.mbi_marginals PROBLEMS.json ANSWERS.json

A problem has the sizes of variables and, for each clique, a potential or a noisy measurement; `null` is a potential
of −∞. The answer has the marginals of the cliques that the problem asks for, and the seconds that it took: the first
time, and again when everything is compiled. Estimates are by mirror descent, until the loss does not change any more.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ITERATIONS = 400_000
TOLERANCE, PATIENCE = 1e-16, 100  # of the loss, relative; so many times 50 iterations without progress


def main() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)  # mbi asks for it
    source, target = map(Path, sys.argv[1:])
    target.write_text(json.dumps([answer(problem) for problem in json.loads(source.read_text())]))


def answer(problem: dict[str, Any]) -> dict[str, Any]:
    """Return the marginals that a problem asks for, and how long they took."""
    import mbi

    domain = mbi.Domain(list(range(len(problem["sizes"]))), problem["sizes"])
    find = find_marginals if "potentials" in problem else estimate
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        marginals = [np.asarray(each).tolist() for each in find(domain, problem)]
        seconds.append(time.perf_counter() - start)
    return {"marginals": marginals, "seconds": seconds}


def find_marginals(domain: Any, problem: dict[str, Any]) -> list[Any]:
    """Return the marginals of the cliques, given their potentials."""
    import jax.numpy as jnp
    import mbi

    cliques = list(map(tuple, problem["cliques"]))
    tables = {
        clique: mbi.Factor(domain.project(clique), jnp.asarray(read_potential(each)))
        for clique, each in zip(cliques, problem["potentials"], strict=True)
    }
    found = mbi.marginal_oracles.message_passing_hugin(mbi.CliqueVector(domain, cliques, tables))
    return [found[clique].values for clique in map(tuple, problem["asked"])]


def read_potential(table: Any) -> Any:
    """Return the array of a table in which `null` is −∞.

    >>> read_potential([0.5, None]).tolist()
    [0.5, -inf]
    """
    values = np.array(table, dtype=float)  # None becomes NaN
    return np.where(np.isnan(values), -np.inf, values)


def estimate(domain: Any, problem: dict[str, Any]) -> list[Any]:
    """Return the marginals of the model that is nearest to noisy measurements."""
    import mbi

    measurements = [
        mbi.LinearMeasurement(np.array(counts, float).ravel(), tuple(clique), deviation)
        for clique, counts, deviation in zip(problem["cliques"], problem["counts"], problem["deviations"], strict=True)
    ]
    total = float(problem["total"])
    model = mbi.estimation.MirrorDescent().estimate(
        domain, measurements, total, iters=ITERATIONS, tol=TOLERANCE, patience=PATIENCE
    )
    return [model.project(tuple(clique)).values / total for clique in problem["asked"]]


if __name__ == "__main__":
    main()
