"""What adapters of all peers share. They run in environments of their own: this needs numpy alone.

An adapter is started as `python -m tabular.NAME TABLE.npz DRAWN.npz REQUEST`. The table has the codes of its records,
(records, columns), and how many each column can have; the request is ε, δ, a seed and settings, as JSON. The adapter
writes as many records as it was given, and what the fit cost.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Fitted:
    """A function that draws n records, and what else is worth knowing of a fit."""

    draw: Callable[[int], Codes]
    notes: dict[str, Any] = field(default_factory=dict)


def cpu_seconds() -> float:
    """Return the processor time of this process, and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_mebibytes() -> float:
    """Return the largest memory that this process has had so far.

    Not `ru_maxrss`: on Linux a process inherits that of the one which has started it.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return math.nan  # this system does not tell


def measure_cost(fit: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what a function returns, and what it has cost."""
    start = cpu_seconds()
    result = fit()
    return result, {"cpu_s": cpu_seconds() - start, "peak_mib": peak_mebibytes()}


def run_adapter(fit: Callable[..., Fitted]) -> None:
    """Fit a model to the table that the command line names, and draw as many records from it."""
    source, drawn, request = sys.argv[1:]
    with np.load(source) as table:
        codes, sizes = table["codes"].astype(np.int64), table["sizes"].tolist()
    fitted, cost = measure_cost(lambda: fit(codes, sizes, **json.loads(request)))
    np.savez_compressed(drawn, codes=fitted.draw(len(codes)))
    Path(drawn).with_suffix(".json").write_text(json.dumps(cost | fitted.notes))
