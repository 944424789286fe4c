"""Whether estimates of `marginals` have converged: the same noisy measurements, estimated with more iterations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import pandas as pd
from scipy import optimize

import sundog
from sundog.privacy.noise import NoiseSource
from tabular.datasets import Table


def fit_longer(
    table: Table, *, epsilon: float, delta: float, seed: int, times: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return synthetic records of two fits with equal noise, whose last estimates differ in the number of iterations.

    The second has as many `times` more than the first took until it stopped. Earlier estimates, from which pairs are
    chosen, are the same: so both measure the same.
    """
    taken: list[int] = []
    minimize = optimize.minimize

    def watch(*arguments: Any, **settings: Any) -> Any:
        found = minimize(*arguments, **settings)
        taken.append(found.nit)
        return found

    def prolong(*arguments: Any, options: dict[str, Any], **settings: Any) -> Any:
        done.append(len(done))
        if len(done) == len(taken):
            options = options | {"maxiter": times * taken[-1], "gtol": 0.0}
        return minimize(*arguments, options=options, **settings)

    done: list[int] = []
    first, second = (_fit(table, each, epsilon=epsilon, delta=delta, seed=seed) for each in (watch, prolong))
    return first, second


def _fit(table: Table, minimize: Callable[..., Any], *, epsilon: float, delta: float, seed: int) -> pd.DataFrame:
    """Return synthetic records of a fit with seeded noise, in which scipy minimises by another function."""
    synthesizer = sundog.Synthesizer("marginals", epsilon, delta, seed=seed, noise=NoiseSource.seeded(seed))
    with mock.patch.object(optimize, "minimize", minimize), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it protects nobody, and is not released
        release = synthesizer.fit(table.train, table.schema.aim_at(table.target)).release_
    return release.sample(len(table.train), seed=seed)
