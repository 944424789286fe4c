"""AIM as the package `dpmm` has it. Runs in an environment of its own, where nothing of sundog is installed.

    python -m tabular.dpmm_aim TABLE.npz DRAWN.npz '{"epsilon": 1.0, "delta": 1e-5, "seed": 0, "settings": {}}'

`settings` are those of `dpmm.models.aim.AIMGM`, and `final_iters`: with it, what was measured is estimated once more
at the end, with as many iterations, from where the last round left off. Its noise comes from OpenDP and has no seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tabular.adapter import Codes, Fitted, run_adapter


def fit(codes: Codes, sizes: list[int], *, epsilon: float, delta: float, seed: int, settings: dict[str, Any]) -> Fitted:
    """Fit AIM to a table of codes."""
    import pandas as pd
    from dpmm.models.aim import AIMGM

    final_iters = settings.pop("final_iters", None)
    names = [f"c{place}" for place in range(len(sizes))]
    random = np.random.RandomState(seed)
    domain = dict(zip(names, sizes, strict=True))
    # In one process, so that its peak memory is that of the fit.
    model = AIMGM(epsilon=epsilon, delta=delta, domain=domain, random_state=random, n_jobs=1, **settings)
    model.fit(pd.DataFrame(codes, columns=names), marginals_only=final_iters is not None)
    aim = model.generator
    if final_iters is not None:
        aim.engine.iters = final_iters
        aim.model, aim.fit_state = aim.engine.estimate(aim.measures), "trained"
    return Fitted(lambda n: model.generate(n_records=n)[names].to_numpy(), {"marginals": len(aim.cliques)})


if __name__ == "__main__":
    run_adapter(fit)
