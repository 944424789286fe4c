"""What is a release worth? Step by step, on the census slice that comes with sundog.

python examples/evaluate_a_release.py [REPORT.html]
"""

from __future__ import annotations

import sys
import tempfile
from importlib import resources
from pathlib import Path

import pandas as pd

import sundog


def main(report_path: Path) -> None:
    # The curator keeps some records back: the release never sees them, so they show what it is worth.
    package = resources.files("sundog.demo")
    everybody = pd.read_csv(str(package / "adult.csv.gz"))
    everybody = everybody.sample(frac=1.0, random_state=7)
    private, held_out = everybody[:7000], everybody[7000:]
    schema = sundog.Schema.load(str(package / "adult.schema.yaml"))

    # A release that keeps every column and nothing between them.
    synth = sundog.Synthesizer(model="independent", epsilon=1.0, delta=1e-6)
    synth.fit(private, schema)

    # Who wants to predict income from it? That is the target. The figures are private: they are for the curator.
    report = sundog.evaluate(synth.release_, real=private, holdout=held_out, target="income", rows=5000)

    # Every figure has a 95% interval, and stands between real data and columns that know nothing of each other.
    for name in ("fidelity.tvd_1way", "fidelity.tvd_2way", "utility.tstr.forest.auc", "fidelity.propensity_auc"):
        found, best, worst = report.measures[name], report.ceiling[name], report.floor[name]
        print(
            f"{name:26} {found.value:.3f} ({found.low:.3f} to {found.high:.3f})   "
            f"real data {best.value:.3f}   independent columns {worst.value:.3f}"
        )

    # The same in words: what is shown, what is not, and what so many records cannot tell.
    print(f"\n{report.headline}")

    # Each column by itself is close: the mean one-way distance is small. Relations are gone: a model that
    # learns from this release guesses, as it would from independent columns. The page shows it at a glance.
    report.to_html(report_path)
    print(f"\n{report_path.name}: one page to look at, {report_path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "report.html")
