"""ε against epochs, as in Fig. 2 of Acs et al. (2019): their accountant, and ours for the same noise.

`dpgm/accounting.py` describes both. The first row compares their accountant with the ε they state for MNIST. The rows
`by moments` account our events with their kind of accountant, orders up to 32: the difference there is due to charging
a step once, with all of its noise; the rest is due to privacy loss distributions.

python benchmarks/dpgm_epsilon.py [--quick] [--json FILE] [--plot FILE]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpgm.accounting import DELTA, MNIST_EPSILON, Setting, compute_our_epsilon, compute_papers_epsilons, make_plan
from report import Row, parse_arguments, publish

from sundog.privacy.accountant import compute_epsilon

MNIST = Setting()
EPOCHS = [1, 2, 5, 10, 15, 20, 30]
LAST = 20
VARIED: dict[str, tuple[float, ...]] = {  # one panel each
    "sample_rate": (0.0017, 0.005, 0.01),
    "sigma_k": (10.0, 15.0, 20.0, 40.0),
    "sigma_g": (1.0, 1.5, 2.0, 4.0),
}
SYMBOLS = {"sample_rate": "q", "sigma_k": "σ_K", "sigma_g": "σ_G"}

Curves = tuple[list[float], list[float]]


def compute_curves(setting: Setting, epochs: list[int]) -> Curves:
    return compute_papers_epsilons(setting, epochs), [compute_our_epsilon(setting, count) for count in epochs]


def format_label(setting: Setting) -> str:
    return f"q={setting.sample_rate:g} σ_K={setting.sigma_k:g} σ_G={setting.sigma_g:g}"


def draw_figure(found: dict[Setting, Curves], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels: Any = figure.subplots(1, len(VARIED), sharey=True)
    for axes, (name, values) in zip(panels, VARIED.items(), strict=True):
        for place, value in enumerate(values):
            theirs, ours = found[replace(MNIST, **{name: value})]
            axes.plot(EPOCHS, theirs, color=f"C{place}", label=f"{SYMBOLS[name]} = {value:g}")
            axes.plot(EPOCHS, ours, color=f"C{place}", linestyle="--")
        axes.set(xlabel="epochs", title=f"several {SYMBOLS[name]}")
        axes.grid(axis="y")
        axes.legend(fontsize=8)
    panels[0].plot(LAST, MNIST_EPSILON, "k*", markersize=10)
    panels[0].set(ylabel="ε at δ = 10⁻⁵")
    panels[0].set_ylim(bottom=0)
    figure.suptitle(
        f"the papers' accountant (solid) and ours (dashed); the star is what they state; {format_label(MNIST)}"
    )
    figure.savefig(path, dpi=130)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw the curves to this PNG file")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    epochs = [1, LAST] if options.quick else EPOCHS
    settings = [MNIST]
    if not options.quick:
        settings += [replace(MNIST, **{name: value}) for name, values in VARIED.items() for value in values]
    found = {setting: compute_curves(setting, epochs) for setting in dict.fromkeys(settings)}
    stated = found[MNIST][0][epochs.index(LAST)]
    rows = [Row("papers' accountant, MNIST", stated, "", "stated in the papers", MNIST_EPSILON)]
    for setting, (theirs, ours) in found.items():
        for count, their, our in zip(epochs, theirs, ours, strict=True):
            name = f"{format_label(setting)} T={count}"
            rows.append(Row(name, our, "", "papers' accountant", their))
            if setting == MNIST:
                moments = compute_epsilon(make_plan(setting, count), delta=DELTA, method="moments")
                rows.append(Row(f"{name} by moments", moments, "", "papers' accountant", their))
    publish(rows, options)
    if options.plot and not options.quick:
        draw_figure(found, options.plot)


if __name__ == "__main__":
    main()
