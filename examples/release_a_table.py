"""Make a release of a private table step by step, on the census data that comes with sundog.

python examples/release_a_table.py
"""

from __future__ import annotations

import tempfile
from importlib import resources
from pathlib import Path

import pandas as pd

import sundog


def main(folder: Path) -> None:
    # The curator. The data is private; the schema is public, and was reviewed.
    package = resources.files("sundog.demo")
    private = pd.read_csv(str(package / "adult.csv.gz"))
    schema = sundog.Schema.load(str(package / "adult.schema.yaml"))

    # One ledger for all releases of this dataset: ε = 2 in total.
    ledger = sundog.Ledger.create(folder / "adult.ledger", epsilon=2.0, delta=1e-6)
    synth = sundog.Synthesizer(model="independent", epsilon=1.0, ledger=ledger)
    synth.fit(private, schema)
    synth.release_.save(folder / "adult.sundog")
    print(f"spent ε = {ledger.compute_spent():.3f} of {ledger.budget.epsilon:g}\n")

    # The analyst, who has only the file.
    release = sundog.Release.load(folder / "adult.sundog")
    problems = release.verify()
    print(problems or "the certificate adds up")
    print(str(release.certificate).split("\n\n")[1], "\n")

    fake = release.sample(len(private), seed=7)
    print("mean age:        real", round(private.age.mean(), 1), " synthetic", round(fake["age"].mean(), 1))
    women = release.sample(1_000, seed=7, where={"sex": "Female"})
    print("drawn women:    ", (women["sex"] == "Female").sum(), "of 1000")
    grown = release.sample(1_000, seed=7, where=["age>=40", "age<65", "education in Bachelors, Masters"])
    print("drawn ages:     ", grown["age"].min(), "to", grown["age"].max())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
