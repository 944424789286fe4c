"""Evaluation on Adult: its run time, and its figures beside those of a few lines of pandas and scikit-learn.

The release is `independent` at ε = 1. The peer of the time is the training of a single forest of 200 trees on the same
records; that of the distances is a recomputation with pandas; those of the models are scikit-learn's on one-hot
columns made by pandas.

    SUNDOG_DATA=../shared/data python benchmarks/evaluate_adult.py [--quick] [--json FILE]
"""

from __future__ import annotations

import itertools
import tempfile
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from report import DATA, Row, parse_arguments, publish
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

import sundog
from sundog.data.bins import make_bins
from sundog.data.reading.read import encode, read

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
TARGET, POSITIVE = "income", ">50K"


def load_adult(*, quick: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the training and the test records."""
    if not quick and (DATA / "adult_train.csv.gz").exists():
        return pd.read_csv(DATA / "adult_train.csv.gz"), pd.read_csv(DATA / "adult_test.csv.gz")
    print("on the bundled slice; set SUNDOG_DATA for all of Adult")
    bundled = pd.read_csv(str(resources.files("sundog.demo") / "adult.csv.gz"))
    cut = 2000 if quick else 7000
    return bundled[:cut], bundled[cut : 2 * cut].reset_index(drop=True)


def measure_distance(real: pd.DataFrame, fake: pd.DataFrame, schema: sundog.Schema, size: int) -> float:
    """Return the mean total-variation distance of all marginals of this many columns, with pandas alone."""
    binned = []
    for frame in (real, fake):
        records = encode(read(frame, schema), schema)
        columns = {name: make_bins(column).to_bins(records.codes[name]) for name, column in schema.columns.items()}
        binned.append(pd.DataFrame(columns))
    found = []
    for names in itertools.combinations(schema.columns, size):
        shares = [frame.value_counts(normalize=True, subset=list(names)) for frame in binned]
        found.append(0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum())
    return float(np.mean(found))


def time_forest(train: pd.DataFrame) -> float:
    start = time.perf_counter()
    RandomForestClassifier(200, n_jobs=2, random_state=0).fit(*make_design(train))
    return time.perf_counter() - start


def make_design(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[bool]]:
    categories = frame.drop(columns=TARGET).select_dtypes(exclude="number").columns
    return pd.get_dummies(frame.drop(columns=TARGET), columns=list(categories)), frame[TARGET] == POSITIVE


def measure_auc(
    model: RandomForestClassifier | HistGradientBoostingClassifier, train: pd.DataFrame, test: pd.DataFrame
) -> float:
    x, y = make_design(train)
    tested, truth = make_design(test)
    model.fit(x, y)
    chances = model.predict_proba(tested.reindex(columns=x.columns, fill_value=False))[:, 1]
    return float(roc_auc_score(truth, chances))


def main() -> None:
    options = parse_arguments(__doc__ or "")
    train, test = load_adult(quick=options.quick)
    schema = sundog.Schema.load(SCHEMA)
    release = sundog.Synthesizer(model="independent", epsilon=1.0, delta=1e-5).fit(train, schema).release_
    start = time.perf_counter()
    report = sundog.evaluate(release, real=train, holdout=test, target=TARGET)
    with tempfile.TemporaryDirectory() as folder:
        report.to_html(Path(folder) / "report.html")
        report.to_json(Path(folder) / "report.json")
    taken = time.perf_counter() - start
    fake = release.sample(release.records, seed=0)  # the records of the report
    assert isinstance(fake, pd.DataFrame)
    rows = [Row("report and JSON", taken, "s", "a forest of 200 trees", time_forest(train))]
    for size in (1, 2):
        name = f"fidelity.tvd_{size}way"
        rows.append(Row(name, report.measures[name].value, "", "pandas", measure_distance(train, fake, schema, size)))
    for kind, model in (
        ("forest", RandomForestClassifier(200, n_jobs=2, random_state=0)),
        ("boosting", HistGradientBoostingClassifier(random_state=0)),
    ):
        name = f"utility.tstr.{kind}.auc"
        rows.append(
            Row(
                f"{name}, real data",
                report.ceiling[name].value,
                "",
                "scikit-learn by hand",
                measure_auc(model, train, test),
            )
        )
    publish(rows, options)


if __name__ == "__main__":
    main()
