"""Inference and estimation of `marginals` beside those of mbi 2.0 (private-pgm): largest differences, and seconds.

Inference: the marginals of given potentials, some of them impossible. Estimation: the model of largest entropy among
those nearest to noisy measurements, weighted by precision. mbi has no prior on potentials; ours is made so weak here
that it makes no difference. mbi runs in an environment of its own, which `make peers` installs. `--write` keeps the
problems and mbi's answers in the file that tests/models/marginals/test_mbi.py reads.

    python benchmarks/marginals_mbi.py [--quick] [--json FILE] [--peers FOLDER] [--write]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from report import Row, parse_arguments, publish
from tabular.mbi_marginals import read_potential
from tabular.peers import FOLDER, find_python

from sundog.models.marginals.bucket_tree import Clique, eliminate
from sundog.models.marginals.estimation import COLUMN_PRIOR, PAIR_PRIOR, Measurement, estimate_potentials
from sundog.models.marginals.inference import CliqueLayout, Floats, calibrate, compute_marginals

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "models" / "marginals" / "mbi_marginals.json"
WEAKNESS = 1e-4  # of our prior: what λ times the variance is divided by the variance
ITERATIONS, TOLERANCE = 5000, 1e-6
ALLOWED = 1e-5  # difference of a probability
DIGITS = 10  # of those in the file

Problem = dict[str, Any]


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peers", type=Path, default=FOLDER, help="the folder of the peers' environments")
    parser.add_argument("--write", action="store_true", help=f"write the answers of mbi to {GOLDEN.name}")


def main() -> None:
    options = parse_arguments(__doc__ or "", extend)
    problems = list_problems()
    if options.quick:
        problems = problems[:1]
    rows: list[Row] = []
    if find_python(options.peers / "mbi").exists():
        answers = ask_mbi(problems, options.peers)
        for problem, answer in zip(problems, answers, strict=True):
            rows += compare(problem, answer)
        if options.write:
            write_golden(problems, answers)
    else:
        print("without mbi, which is not installed (see `make peers`)")
    publish(rows, options)


# --- problems ---


def list_problems() -> list[Problem]:
    """Return graphs with potentials, and graphs with noisy measurements: with cycles, cliques in others, and zeros."""
    return [
        draw_potentials("chain", [4, 3, 5, 2], [(0, 1), (1, 2), (2, 3), (2,)], seed=0),
        draw_potentials(
            "cycle with a chord", [3, 4, 3, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 4)], seed=1
        ),
        draw_potentials("zeros", [3, 3, 4, 2, 3], [(0, 1), (1, 2, 3), (0, 3), (4,)], seed=2, impossible=0.15),
        draw_potentials("two parts", [5, 2, 3, 4], [(0, 1), (2, 3), (0,), (3,)], seed=3, impossible=0.1),
        draw_counts("noisy chain", [4, 3, 5], [(0,), (0, 1), (1, 2)], [5, 10, 10], total=20_000, seed=1),
        draw_counts(
            "noisy cycle", [3, 4, 3, 2], [(0, 1), (1, 2), (2, 3), (0, 3)], [5, 10, 20, 5], total=20_000, seed=2
        ),
        draw_counts("noisy triple", [3, 2, 4, 3], [(0, 1, 2), (2, 3), (1, 3)], [10, 10, 20], total=20_000, seed=3),
        draw_counts(
            "counts below zero", [4, 3, 3], [(0, 1), (1, 2), (0, 2)], [10, 10, 10], total=10_000, seed=4, evenness=0.2
        ),
    ]


def draw_potentials(
    name: str, sizes: list[int], cliques: Sequence[Clique], *, seed: int, impossible: float = 0.0
) -> Problem:
    """Return a problem of inference: some share of the cells is impossible."""
    rng = np.random.default_rng(seed)
    potentials: list[Any] = []
    for clique in cliques:
        values = rng.normal(0, 2, [sizes[v] for v in clique]).round(3).astype(object)
        values[rng.random(values.shape) < impossible] = None
        potentials.append(values.tolist())
    lists = [list(clique) for clique in cliques]
    return {"name": name, "sizes": sizes, "cliques": lists, "potentials": potentials, "asked": lists}


def draw_counts(
    name: str,
    sizes: list[int],
    cliques: Sequence[Clique],
    deviations: list[float],
    *,
    total: int,
    seed: int,
    evenness: float = 1.0,
) -> Problem:
    """Return a problem of estimation; every pair of variables is asked for, measured or not."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(math.prod(sizes), evenness)).reshape(sizes)
    counts = []
    for clique, deviation in zip(cliques, deviations, strict=True):
        exact = total * p.sum(axis=tuple(v for v in range(len(sizes)) if v not in clique))
        counts.append(np.rint(exact + rng.normal(0, deviation, exact.shape)).astype(int).tolist())
    return {
        "name": name,
        "sizes": sizes,
        "cliques": [list(clique) for clique in cliques],
        "counts": counts,
        "deviations": deviations,
        "total": total,
        "asked": [list(pair) for pair in combinations(range(len(sizes)), 2)],
    }


# --- answers ---


def solve(problem: Problem) -> list[Floats]:
    """Return our marginals of the cliques that a problem asks for."""
    cliques: list[Clique] = list(map(tuple, problem["cliques"]))
    asked: list[Clique] = list(map(tuple, problem["asked"]))
    tree = eliminate(problem["sizes"], [*cliques, *asked])
    if "potentials" in problem:
        potentials = dict(zip(cliques, map(read_potential, problem["potentials"]), strict=True))
    else:
        measured = {
            clique: Measurement(np.array(counts, float), weaken_prior(clique, deviation))
            for clique, counts, deviation in zip(cliques, problem["counts"], problem["deviations"], strict=True)
        }
        potentials = estimate_potentials(
            tree, measured, problem["total"], fixed={}, start={}, iterations=ITERATIONS, tolerance=TOLERANCE
        )
    layout = CliqueLayout(tree, asked)
    return list(layout.split(compute_marginals(calibrate(tree, potentials), layout)).values())


def weaken_prior(clique: Clique, deviation: float) -> Floats:
    """Return the variance to state: λ times it, all that the estimate knows of it, is in proportion to the true one."""
    return np.array(WEAKNESS * deviation**2 / (COLUMN_PRIOR if len(clique) == 1 else PAIR_PRIOR))


def find_difference(ours: Sequence[Floats], theirs: Sequence[Any]) -> float:
    """Return the largest difference of two probabilities."""
    return max(float(np.abs(one - np.array(other)).max()) for one, other in zip(ours, theirs, strict=True))


def ask_mbi(problems: Sequence[Problem], folder: Path) -> list[dict[str, Any]]:
    """Return the answers of mbi, and the seconds that each took."""
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "problems.json", Path(name) / "answers.json"
        source.write_text(json.dumps(problems))
        command = [str(find_python(folder / "mbi")), "-m", "tabular.mbi_marginals", str(source), str(target)]
        subprocess.run(command, check=True, cwd=name, env={**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")})
        found: list[dict[str, Any]] = json.loads(target.read_text())
        return found


def compare(problem: Problem, answer: dict[str, Any]) -> list[Row]:
    """Return the difference beside the one that is allowed, and our seconds beside those of mbi."""
    start = time.perf_counter()
    ours = solve(problem)
    seconds, name = time.perf_counter() - start, problem["name"]
    first, again = answer["seconds"]
    return [
        Row(f"difference, {name}", find_difference(ours, answer["marginals"]), "", "allowed", ALLOWED),
        Row(f"time, {name}", seconds, "s", "mbi, with compilation", first),
        Row(f"time, {name}", seconds, "s", "mbi, compiled", again),
    ]


def write_golden(problems: Sequence[Problem], answers: Sequence[dict[str, Any]]) -> None:
    """Write each problem, with the marginals that mbi finds, as one line."""
    lines = []
    for problem, answer in zip(problems, answers, strict=True):
        marginals = [np.round(each, DIGITS).tolist() for each in answer["marginals"]]
        lines.append(json.dumps({**problem, "marginals": marginals}))
    GOLDEN.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
