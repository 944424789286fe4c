"""What trains on a GPU: games for a vae and a gan, and the noise that their steps draw there.

"mu": the Gaussian estimate of μ at ε = 4, beside that of the claim; "p-value": of the trade-off curve, beside the level
of an alarm. "scale": the deviation of the noise in the gradients of whole fits, in units of the planned one. "p at":
the p-value of the planned scale, and of two thirds and three halves of it, by Kolmogorov and Smirnov. "sum": the norm
of a noisy sum minus the noise that was drawn, at most, in clipping norms. If all layers get the noise that was drawn,
it is below the number of records. "repeats": how many runs of four numbers came twice, among all draws of all steps and
layers in three processes. One of them is interrupted in the middle of a block, and another goes on from its checkpoint.

python benchmarks/audit_cuda.py [--quick] [--json FILE] [--runs N] [--device cpu|cuda]
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from report import Row, parse_arguments, publish
from scipy import stats

from sundog.auditing.games.model_games import play_model
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.noise import NoiseSource
from sundog.training.trainer import Trainer

Numbers = npt.NDArray[np.float32]

MODELS = ("vae", "gan")
LEVEL, ALARM = 0.05, 1e-9
SCALES = {"1": 1.0, "2/3": 2 / 3, "3/2": 3 / 2}
RECORDS, INTERRUPTED = 40, 20  # steps until the interruption, in the third block
SETTINGS: dict[str, dict[str, Any]] = {
    "vae": {"hidden": 64, "batch": 10, "epochs": 8},
    "gan": {"hidden": 64, "batch": 10, "epochs": 8, "shape": "mlp", "condition": None, "classifier": 0},
}
COLUMNS = {
    "place": {"type": "categorical", "values": [f"p{number}" for number in range(100)]},
    "age": {"type": "integer", "min": 0, "max": 99},
}


@dataclass
class Seen:
    """What the steps of a fit used, one array for each step.

    Args:
        normals: the numbers that were drawn.
        gradients: the noisy sums of clipped gradients, in units of the planned deviation of their noise.
        sums: the norms of these sums without the noise that was drawn, in clipping norms.
    """

    normals: list[Numbers] = field(default_factory=list)
    gradients: list[Numbers] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)


@contextlib.contextmanager
def watch_steps(*, stop: int | None = None) -> Iterator[Seen]:
    """Look at each step of trainings inside the block, and raise KeyboardInterrupt after `stop` of them."""
    seen, own = Seen(), Trainer._call

    def call(self: Trainer, pieces: Any) -> None:
        own(self, pieces)
        step = self.step
        gradients = [p.grad.flatten() for p in step.groups.parameters if p.grad is not None]
        unit = step.noise_multiplier * step.policy.bounds[0] / step.expected_batch
        seen.normals.append(step._noise.normals.cpu().numpy().copy())
        seen.gradients.append((torch.cat(gradients) / unit).cpu().numpy())
        exact = seen.gradients[-1] - seen.normals[-1]
        seen.sums.append(step.noise_multiplier * float(np.linalg.norm(exact)))
        if len(seen.normals) == stop:
            raise KeyboardInterrupt

    Trainer._call = call  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Trainer._call = own  # type: ignore[method-assign]


def fit(
    model: str,
    device: str,
    *,
    out: Path | None = None,
    resume: bool = False,
    stop: int | None = None,
    noise: NoiseSource | None = None,
    **settings: Any,
) -> Seen:
    """Fit a model, by default with private noise, and return what its steps used.

    Noise is large, so that records hardly matter. `settings` are further ones of the model.
    """
    rng = np.random.default_rng(0)
    table = {
        "place": [f"p{code}" for code in rng.integers(0, 100, RECORDS)],
        "age": rng.integers(0, 100, RECORDS).tolist(),
    }
    chosen = {**SETTINGS[model], **settings}
    synth = Synthesizer(model, epsilon=0.2, delta=1e-5, seed=0, device=device, settings=chosen, noise=noise)
    with watch_steps(stop=stop) as seen, contextlib.suppress(KeyboardInterrupt):
        synth.fit(table, {"columns": COLUMNS, "records": RECORDS}, out=out, resume=resume)
    return seen


def compute_scale_p_value(gradients: Sequence[Numbers], scale: float) -> float:
    """Return the p-value of the noise if its deviation is `scale` times the planned one."""
    return float(stats.kstest(np.concatenate(gradients).astype(np.float64) / scale, "norm").pvalue)


def count_repeats(draws: Sequence[Numbers]) -> int:
    """Return how many runs of four numbers, wherever they begin, came before.

    >>> draws = np.random.default_rng(0).normal(size=(2, 100)).astype(np.float32)
    >>> count_repeats(list(draws)), count_repeats([*draws, draws[1, 30:40]])
    (0, 7)
    """
    factors = np.random.default_rng(0).integers(2**63, 2**64, 4, np.uint64) | np.uint64(1)
    keys = []
    for draw in draws:
        bits = draw.view(np.uint32).astype(np.uint64)
        runs = np.lib.stride_tricks.sliding_window_view(bits, len(factors))
        keys.append((runs * factors).sum(axis=1, dtype=np.uint64))
    every = np.concatenate(keys)
    return len(every) - len(np.unique(every))


def watch_processes(model: str, device: str) -> list[Seen]:
    """Fit in one process, be interrupted in a second, and go on in a third."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        out = Path(folder) / "fit.sundog"
        lost, whole = pool.submit(fit, model, device, out=out, stop=INTERRUPTED), pool.submit(fit, model, device)
        lost.result()
        resumed = pool.submit(fit, model, device, out=out, resume=True)
        return [each.result() for each in (whole, lost, resumed)]


def measure_noise(model: str, device: str) -> list[Row]:
    """Return the rows of the noise of a model."""
    seen = watch_processes(model, device)
    gradients = [step for each in seen for step in each.gradients]
    normals = [step for each in seen for step in each.normals]
    label = f"{model}, {len(normals)} steps in 3 processes"
    rows = [Row(f"scale {label}", float(np.concatenate(gradients).std()), "", "planned", 1.0)]
    for name, scale in SCALES.items():
        rows.append(Row(f"p at {name} {model}", compute_scale_p_value(gradients, scale), "", "alarm", ALARM))
    rows.append(Row(f"sum {model}", max(norm for each in seen for norm in each.sums), "clips", "records", RECORDS))
    return [*rows, Row(f"repeats {label}", count_repeats(normals), "", "independent draws", 0.0)]


def measure_game(model: str, device: str, runs: int) -> list[Row]:
    """Return the rows of a game."""
    result = play_model(model, epsilon=4.0, runs=runs, device=device)
    print(f"{model} on {device}, {runs} runs: {result.verdict}", flush=True)
    return [
        Row(f"mu {model}, {runs} runs", result.mu.value, "", "the claim", result.promised_mu),
        Row(f"mu, low {model}", result.mu.low, "", "the claim", result.promised_mu),
        Row(f"p-value {model}", result.p_value, "", "level", LEVEL),
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=400, help="of each game")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda", help="cpu: to compare, or without a GPU")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    rows: list[Row] = []
    models: Sequence[str] = MODELS[:1] if options.quick else MODELS
    if options.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing is measured")
        models = ()
    for model in models:
        rows += measure_noise(model, options.device)
        rows += measure_game(model, options.device, 20 if options.quick else options.runs)
    publish(rows, options)


if __name__ == "__main__":
    main()
