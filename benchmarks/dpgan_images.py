"""A GAN on MNIST at ε = 10, 4 and 1, δ = 1e-5, and the ablation of Zhang, Ji and Wang (2018), Tables 8 and 9.

Each release is fitted by `sundog fit` in a separate process and timed from the start of Python to the file. The usual
network of the literature is trained on as many generated records and their labels, and tested on real images, by which
nothing is chosen (dpgan/downstream.py). The Inception score and the Fréchet distance use a network that was trained on
real training images. Peers are, in the same run, the real training images and the mean image of each class, repeated;
and published figures. Class means have the best Inception score of all: the score does not measure whether images of a
class differ, so it says nothing about a generator that starts from class means. The other two scores do.

With `--ablation` each strategy of the paper is fitted at one ε, on the same 98% of the records; the others are public.
`kinds` clips weights and biases separately, `clusters` five groups of parameters, `bounds` takes bounds from public
records, `warm` starts on them, `decay` decreases a fixed bound, and `dpnorm` (not in this paper) uses the noisy mode of
the norms of private records. Groups are accounted jointly (dpgan_steps.py): all strategies spend the same. Peers are
`none`, in the same run, the public records alone, and the paper's Inception scores. `--records` uses fewer of the
training records: on two cores all of MNIST takes a day.

`--keep` names a folder for releases and outcomes. Outcomes of the same code are not computed again, so a stopped run
can be continued.

    SUNDOG_DATA=../shared/data python benchmarks/dpgan_images.py [--quick] [--json FILE] [--plot FILE] [--ablation]
        [--epsilons E ...] [--seeds N] [--records N] [--device cpu|cuda] [--processes N] [--keep FOLDER]
        [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpgan.common import digest_code
from dpgan.images import Fit, Scores, Trials, draw_samples, load, write_rows
from report import Row, parse_arguments, publish

import sundog

PUBLIC = 0.02  # share of the training records, as in the paper
ABLATION = 4.0  # the ε of the paper's tables
TEN_MINUTES = 600.0
TEXT = 8.64  # Inception score of dp-GAN in Table 2, at ε = 4
PUBLISHED = {10.0: {"Bie et al. 2023": 0.950, "Dockhorn et al. 2023": 0.981}}  # accuracy
NONE, DP_GAN = "none", "dp-GAN text, ε=4"
MEASURES = {"accuracy": "accuracy", "inception": "Inception", "frechet": "Fréchet"}


@dataclass(frozen=True)
class Strategy:
    """The settings of a model, whether it gets public records, and the paper's Inception score if there is one."""

    settings: tuple[str, ...] = ()
    public: bool = False
    score: float | None = None


_WHOLE, _KINDS, _CLUSTERS = "groups=all", "groups=weights and biases", "groups=5"
_FIXED, _BOUNDS, _COLD, _WARM = "clip=1", "clip=public", "warm=0", "warm=300"
STRATEGIES = {
    NONE: Strategy(score=6.59),
    "kinds": Strategy((_KINDS,), score=6.46),
    "bounds": Strategy((_WHOLE, _BOUNDS, _COLD), public=True, score=7.76),
    "kinds+bounds": Strategy((_KINDS, _BOUNDS, _COLD), public=True, score=8.20),
    "clusters+bounds": Strategy((_CLUSTERS, _BOUNDS, _COLD), public=True, score=8.03),
    "kinds+bounds+warm": Strategy((_KINDS, _BOUNDS, _WARM), public=True, score=TEXT),
    "clusters+bounds+warm": Strategy((_CLUSTERS, _BOUNDS, _WARM), public=True),
    "warm": Strategy((_FIXED, _WHOLE, _WARM), public=True),
    "decay": Strategy(("decay=0.3",)),
    "dpnorm": Strategy(("clip=dpnorm",)),
}

Outcomes = dict[Fit, Scores]
_trials: Trials  # global in each process of the pool, so that they are loaded once


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw samples of the first seed into this file")
    parser.add_argument("--ablation", action="store_true", help="the strategies of the paper, at ε = 4")
    parser.add_argument("--epsilons", nargs="+", type=float)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--records", type=int, help="the most training records to use, including the public ones")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--processes", type=int, default=1, help="parallel fits; more than one are not timed")
    parser.add_argument("--keep", type=Path, help="a folder for releases and outcomes")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    options.epsilons = options.epsilons or ([ABLATION] if options.ablation else [10.0, 4.0, 1.0])
    with tempfile.TemporaryDirectory() as folder:
        kept = options.keep or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        public = PUBLIC if options.ablation else 0.0
        trials = load(kept, quick=options.quick, device=options.device, public=public, records=options.records)
        run_contest(trials, options)


def list_fits(options: argparse.Namespace) -> list[Fit]:
    """Return all fits, ordered by seed, so that a stopped run has some of each strategy."""
    ways = STRATEGIES if options.ablation else {"gan": Strategy(score=TEXT)}
    epsilons, seeds, settings = options.epsilons, options.seeds, options.set
    if options.quick:
        epsilons, seeds, settings = epsilons[:1], 1, ["epochs=1", *settings]
    return [
        Fit(name, epsilon, seed, options.device, (*settings, *way.settings), public=way.public)
        for seed in range(seeds)
        for epsilon in epsilons
        for name, way in ways.items()
    ]


def run_contest(trials: Trials, options: argparse.Namespace) -> None:
    """Fit and score; write all rows again after each."""
    fits = list_fits(options)
    found: Outcomes = {}
    for fit, scores in run_fits(trials, [*trials.controls, *fits], options.processes):
        found[fit] = scores
        print(
            f"{fit.name} ε={fit.epsilon:g}, seed {fit.seed}: accuracy {scores.accuracy:.4f}, "
            f"Inception {scores.inception:.3f}, Fréchet {scores.frechet:.4f}, {scores.seconds:.1f} s, "
            f"ε = {scores.spent:.4g} spent",
            flush=True,
        )
        write_rows(make_rows(found, trials, options), options)
    publish(make_rows(found, trials, options), options)
    if options.plot:
        first = {f"{fit.name} ε={fit.epsilon:g}": fit for fit in fits if fit.seed == 0}
        releases = {name: sundog.Release.load(trials.folder / f"{fit.stem}.sundog") for name, fit in first.items()}
        draw_samples(releases, options.plot)


# --- parallel fits -------------------------------------------------------------------------------------------------


def run_fits(trials: Trials, fits: Sequence[Fit], processes: int) -> Iterator[tuple[Fit, Scores]]:
    """Yield the outcomes as they are completed."""
    if processes == 1:
        for fit in fits:
            yield fit, run_once(trials, fit)
        return
    with multiprocessing.get_context("spawn").Pool(processes, _start_worker, (trials,)) as pool:
        yield from pool.imap_unordered(_run_one, fits)


def _start_worker(trials: Trials) -> None:
    global _trials  # noqa: PLW0603
    _trials = trials


def _run_one(fit: Fit) -> tuple[Fit, Scores]:
    return fit, run_once(_trials, fit)


def run_once(trials: Trials, fit: Fit) -> Scores:
    """Return the kept outcome of this fit, or run it."""
    path = trials.folder / f"{fit.stem}.json"
    asked = {**asdict(fit), "settings": list(fit.settings), "records": len(trials.train), "code": digest_code()}
    if path.exists():
        kept = json.loads(path.read_text())
        if kept["fit"] == asked:
            return Scores(**kept["worth"])
    scores = trials.run(fit)
    path.write_text(json.dumps({"fit": asked, "worth": asdict(scores)}, indent=1) + "\n")
    return scores


# --- rows ----------------------------------------------------------------------------------------------------------


def make_rows(found: Outcomes, trials: Trials, options: argparse.Namespace) -> list[Row]:
    """Return the means over seeds of the outcomes so far."""
    rows: list[Row] = []
    controls = {fit.name: scores for fit, scores in found.items() if fit.epsilon == math.inf}
    means = {(fit.name, fit.epsilon): _average(found, fit) for fit in found if fit.epsilon < math.inf}
    for (name, epsilon), scores in means.items():
        plain = means.get((NONE, epsilon))
        peers = controls if plain is None or name == NONE else {NONE: plain}
        published = _find_published(name, epsilon, options) if trials.is_mnist else {}
        for measure, label in MEASURES.items():
            values = {peer: getattr(each, measure) for peer, each in peers.items()} | published.get(measure, {})
            what, value = f"{label}, {name} ε={epsilon:g}", getattr(scores, measure)
            rows += [Row(what, value, "", peer, peer_value) for peer, peer_value in values.items()]
        if options.processes == 1:
            rows.append(Row(f"time, {name} ε={epsilon:g}", scores.seconds, "s", "ten minutes", TEN_MINUTES))
    return rows


def _find_published(name: str, epsilon: float, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    if not options.ablation:
        return {"accuracy": PUBLISHED.get(epsilon, {}), "inception": {DP_GAN: TEXT}}
    score = STRATEGIES[name].score
    return {} if score is None else {"inception": {DP_GAN: score}}


def _average(found: Outcomes, like: Fit) -> Scores:
    seeds = [asdict(found[fit]) for fit in found if (fit.name, fit.epsilon) == (like.name, like.epsilon)]
    return Scores(**{name: statistics.mean(each[name] for each in seeds) for name in seeds[0]})


if __name__ == "__main__":
    main()
