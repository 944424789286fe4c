"""Evaluate a release step by step, on the census data that comes with sundog.

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
    # The curator holds some records out. The release is not fitted on them, so they serve as test data.
    package = resources.files("sundog.demo")
    everybody = pd.read_csv(str(package / "adult.csv.gz"))
    everybody = everybody.sample(frac=1.0, random_state=7)
    private, held_out = everybody[:7000], everybody[7000:]
    schema = sundog.Schema.load(str(package / "adult.schema.yaml"))

    # A release that keeps every marginal, but no relations between columns.
    synth = sundog.Synthesizer(model="independent", epsilon=1.0, delta=1e-6)
    synth.fit(private, schema)

    # The target is the column to predict. The figures are as private as the data: only the curator may see them.
    report = sundog.evaluate(synth.release_, real=private, holdout=held_out, target="income", rows=2000)

    # Every figure has a 95% interval. Real data is the ceiling, independent columns are the floor.
    for name in ("fidelity.tvd_1way", "fidelity.tvd_2way", "utility.tstr.forest.auc", "fidelity.propensity_auc"):
        found, best, worst = report.measures[name], report.ceiling[name], report.floor[name]
        print(
            f"{name:26} {found.value:.3f} ({found.low:.3f} to {found.high:.3f})   "
            f"real data {best.value:.3f}   independent columns {worst.value:.3f}"
        )

    # The headline says the same in words, and what cannot be determined at this sample size.
    print(f"\n{report.headline}")

    # The mean one-way distance is small, so each column is close to the real one. The relations are lost: a model
    # trained on this release does not predict better than one trained on independent columns.
    report.to_html(report_path)
    print(f"\n{report_path.name}: one page of figures and plots, {report_path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "report.html")
