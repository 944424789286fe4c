"""Every sentence of a headline, with records for which it is true and records for which it is false.

    python benchmarks/headline.py              # the table of docs/evaluate.md, measured
    python benchmarks/headline.py --headlines  # the whole headline of every release

`tests/evaluation/report/test_claims.py` checks each sentence against this table.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from report import Row, parse_arguments, publish

from sundog.data.schema import Schema
from sundog.evaluation.evaluator import Bounds, Report, build_report
from sundog.evaluation.inputs import EvaluationRequest, read_inputs

REAL, HELD_OUT = 1500, 1000  # records


@dataclass(frozen=True)
class Release:
    """Synthetic records and the real ones.

    Args:
        table: returns a number of real records, given a seed.
        schema: the columns.
        target: the column to predict.
        made: returns the synthetic records, given the real ones.
        real: how many real records there are.
        held_out: how many more are held out.
    """

    table: Callable[[int, int], Any]
    schema: dict[str, Any]
    target: str | None
    made: Callable[[Any], Any]
    real: int = REAL
    held_out: int = HELD_OUT

    def report(self) -> Report:
        """Return the evaluation; every draw has a fixed seed, and releases of the same table share their bounds."""
        request = EvaluationRequest(
            self.made(self.table(self.real, 0)),
            real=self.table(self.real, 0),
            holdout=self.table(self.held_out, 1),
            target=self.target,
            schema=Schema.from_dict({"columns": self.schema}),
        )
        inputs = read_inputs(request)
        reals = (self.table, self.real, self.held_out, self.target)
        report = build_report(inputs, _BOUNDS.get(reals))
        _BOUNDS[reals] = report.bounds
        return report


_BOUNDS: dict[tuple[Any, ...], Bounds] = {}  # by table and sizes


# --- real data -----------------------------------------------------------------------------------------------------

PEOPLE: dict[str, Any] = {
    "age": {"type": "integer", "min": 18, "max": 90, "bins": 10},
    "hours": {"type": "continuous", "min": 0, "max": 100, "resolution": 0.1, "bins": 10},
    "income": {"type": "continuous", "min": 0, "max": 200, "resolution": 0.1, "bins": 10},
    "rent": {"type": "continuous", "min": 0, "max": 200, "resolution": 0.1, "bins": 10},
    "job": {"type": "categorical", "values": list("abcd")},
    "city": {"type": "categorical", "values": list("uvwxyz")},
}


def people(rows: int, seed: int) -> pd.DataFrame:
    """Return people: the job depends on age, income on both, rent on income; the city is independent."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    job = np.array(list("abcd"))[np.clip((age - 18) / 20 + rng.normal(0, 0.5, rows), 0, 3.99).astype(int)]
    hours = np.clip(40 + 10 * (job == "c") - 15 * (job == "d") + rng.normal(0, 8, rows), 0, 100)
    income = np.clip(age + hours * 0.8 + 30 * (job == "b") + rng.normal(0, 6, rows), 0, 200)
    rent = np.clip(income * 0.7 + rng.normal(0, 6, rows), 0, 200)
    city = rng.choice(list("uvwxyz"), rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    numbers = {"hours": hours.round(1), "income": income.round(1), "rent": rent.round(1)}
    return pd.DataFrame({"age": age, **numbers, "job": job, "city": city})


def strangers(rows: int, seed: int) -> pd.DataFrame:
    """Return the same people with independent columns, so that there are no relations to keep."""
    return independent(people(rows, seed), seed + 100)


BITS = {name: {"type": "boolean"} for name in ("a", "b", "c", "both")}


def bits(rows: int, seed: int) -> pd.DataFrame:
    """Return bits: c mostly equals a; `both` is a xor b, and is independent of each alone."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, rows)) < 0.5
    return pd.DataFrame({"a": a, "b": b, "c": a ^ (rng.random(rows) < 0.05), "both": a ^ b})


SHOPPING = {"basket": {"type": "set", "universe": 20, "max_size": 20}}


def shopping(rows: int, seed: int) -> dict[str, list[list[int]]]:
    """Return baskets of twenty items; some people buy many, and even items occur together."""
    rng = np.random.default_rng(seed)
    much, even = rng.random((rows, 1)) < 0.4, rng.random((rows, 1)) < 0.5
    likely = np.where(much, 0.4, 0.15) * np.where(np.arange(20) % 2 == even, 1.5, 0.5)
    return {"basket": [np.flatnonzero(row).tolist() for row in rng.random((rows, 20)) < likely]}


WAVES: dict[str, Any] = {"load": {"type": "series", "length": 12, "min": -1, "max": 2}}


def waves(rows: int, seed: int) -> dict[str, Any]:
    """Return series that rise, fall and rise again."""
    rng = np.random.default_rng(seed)
    return {"load": 0.5 + 0.3 * np.sin(np.arange(12) / 2 + rng.random((rows, 1))) + rng.normal(0, 0.03, (rows, 12))}


# --- synthetic data --------------------------------------------------------------------------------------------------


def copied(real: Any) -> Any:
    """Return the real records themselves."""
    return real


def independent(real: pd.DataFrame, seed: int = 7) -> pd.DataFrame:
    """Return the records with every column shuffled independently."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(real[name].to_numpy()) for name in real})


def half_the_links(real: pd.DataFrame) -> pd.DataFrame:
    """Return the first half of the records, and a second half with independent columns."""
    mixed = independent(real)
    mixed.iloc[: len(real) // 2] = real.iloc[: len(real) // 2].to_numpy()
    return mixed.astype(real.dtypes.to_dict())


def one_destroyed(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with 12 hours added to `hours`."""
    return real.assign(hours=np.clip(real["hours"] + 12, 0, 100))


def one_shuffled(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `hours` shuffled: the marginal is kept, all relations are lost."""
    return real.assign(hours=np.random.default_rng(7).permutation(real["hours"].to_numpy()))


def a_quarter_shuffled(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `hours` shuffled in every fourth."""
    hours = real["hours"].to_numpy().copy()
    hours[::4] = np.random.default_rng(7).permutation(hours[::4])
    return real.assign(hours=hours)


def cities_by_age(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with cities sorted by age, on which they do not depend in the real data."""
    dealt = real.sort_values("age", kind="stable")
    return dealt.assign(city=np.sort(dealt["city"].to_numpy()))


def some_cities_by_age(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with two in five cities sorted by age."""
    some = np.arange(len(real)) % 5 < 2
    return pd.concat([cities_by_age(real[some]), real[~some]])


def anything(real: pd.DataFrame) -> pd.DataFrame:
    """Return uniform draws of all declared values."""
    rng = np.random.default_rng(7)
    rows = len(real)
    numbers = {name: rng.uniform(0, 200, rows).round(1) for name in ("income", "rent")}
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows),
            "hours": rng.uniform(0, 100, rows).round(1),
            **numbers,
            "job": rng.choice(list("abcd"), rows),
            "city": rng.choice(list("uvwxyz"), rows),
        }
    )


def with_outliers(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with a few outliers, which change a linear regression much more than a forest."""
    few = real.iloc[: len(real) // 25].assign(hours=100.0, income=200.0, rent=0.0)
    return pd.concat([real.iloc[len(few) :], few])


def without_both(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `both` shuffled: pairs are kept, the relation of three columns is lost."""
    return real.assign(both=np.random.default_rng(7).permutation(real["both"].to_numpy()))


def only_both(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `c` shuffled: the one relation of a pair is lost, that of three columns is kept."""
    return real.assign(c=np.random.default_rng(7).permutation(real["c"].to_numpy()))


def one_more_item(real: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Return the baskets with item 3 added to a third of them."""
    return {"basket": [sorted({*items, 3}) if place % 3 == 0 else items for place, items in enumerate(real["basket"])]}


def backwards(real: dict[str, Any]) -> dict[str, Any]:
    """Return the series reversed."""
    return {"load": real["load"][:, ::-1]}


def _people(made: Callable[[Any], Any], **sizes: int) -> Release:
    return Release(people, PEOPLE, "rent", made, **sizes)


RELEASES = {
    "copied real data": _people(copied),
    "independent columns": _people(independent),
    "half the links": _people(half_the_links),
    "one destroyed column": _people(one_destroyed),
    "one shuffled column": _people(one_shuffled),
    "a quarter of one column shuffled": _people(a_quarter_shuffled, real=2500),
    "made-up relations": _people(cities_by_age),
    "some made-up relations": _people(some_cities_by_age, real=1000),
    "anything that is declared": _people(anything),
    "a few outliers": _people(with_outliers),
    "sixty other records": _people(lambda _: people(60, 2), real=60, held_out=60),
    "real data without relations": Release(strangers, PEOPLE, "rent", copied),
    "three columns lose what links them": Release(bits, BITS, "both", without_both),
    "only three columns are linked": Release(bits, BITS, "both", only_both),
    "copied sets": Release(shopping, SHOPPING, None, copied, real=4000),
    "one destroyed item": Release(shopping, SHOPPING, None, one_more_item),
    "sixty other sets": Release(shopping, SHOPPING, None, lambda _: shopping(60, 2), real=60, held_out=60),
    "copied series": Release(waves, WAVES, None, copied, real=400, held_out=400),
    "series run backwards": Release(waves, WAVES, None, backwards, real=400, held_out=400),
}


# --- sentences -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sentence:
    """A sentence as a pattern, with the release for which it is true and one for which it is false.

    Args:
        says: the sentence, with … for what depends on the figures.
        claim: the claim that it answers.
        verdict: the answer.
        true_of: the name of a release.
        false_of: the name of another.
    """

    says: str
    claim: str
    verdict: str
    true_of: str
    false_of: str

    def said_of(self, release: str) -> str | None:
        """Return the sentence as it appears in the headline of a release; None if it does not."""
        pattern = re.compile(".*".join(re.escape(part) for part in self.says.split("…")))
        for verdict in report_on(release).verdicts:
            if (verdict.claim, verdict.verdict) == (self.claim, self.verdict) and pattern.fullmatch(verdict.sentence):
                return verdict.sentence
        return None


COPIED, APART, HALF, FEW = "copied real data", "independent columns", "half the links", "sixty other records"
DESTROYED = "one destroyed column"
SETS, FEW_SETS = "copied sets", "sixty other sets"
SENTENCES = [
    Sentence("No column is off by more than …%.", "columns", "yes", COPIED, DESTROYED),
    Sentence("Column '…' is off by …% to …%.", "columns", "no", DESTROYED, COPIED),
    Sentence(
        "No column is shown to be off by more than 5%, but at this size one could be off by up to …% ('…').",
        "columns",
        "unknown",
        FEW,
        COPIED,
    ),
    Sentence(
        "Column '…' is off by …% to …%, and … more columns are off by more than 5%.",
        "columns",
        "no",
        "anything that is declared",
        DESTROYED,
    ),
    Sentence(
        "On the whole relations between columns are kept (…%, …% to …%), but not between 'hours' and 'job' (…%, …% to "
        "…%).",
        "relations",
        "partly",
        "a quarter of one column shuffled",
        COPIED,
    ),
    Sentence(
        "On the whole relations between columns are kept (…%, …% to …%); whether others are made up cannot be "
        "determined at this sample size.",
        "relations",
        "unknown",
        "some made-up relations",
        COPIED,
    ),
    Sentence("Relations between columns are kept (…%, …% to …%).", "relations", "yes", COPIED, APART),
    Sentence(
        "Of the relations between columns …% (…% to …%) is kept. Most is missing between '…' and '…'.",
        "relations",
        "partly",
        HALF,
        COPIED,
    ),
    Sentence(
        "Of the relations between columns …% (…% to …%) is kept. Most is missing between 'hours' and 'job'.",
        "relations",
        "partly",
        "one shuffled column",
        HALF,
    ),
    Sentence("Relations between columns are lost: … is kept.", "relations", "no", APART, HALF),
    Sentence(
        "How much of the relations between columns is kept cannot be determined at this sample size: at least …%.",
        "relations",
        "unknown",
        FEW,
        HALF,
    ),
    Sentence(
        "The real records show no relations between columns that could be measured at this size.",
        "relations",
        "unknown",
        "real data without relations",
        COPIED,
    ),
    Sentence(
        "On the whole relations between columns are kept (…%, …% to …%), beside others that are made up or too "
        "strong (error …% to …%).",
        "relations",
        "partly",
        "made-up relations",
        COPIED,
    ),
    Sentence(
        "Pairs of columns are related as in the real data (…%, …% to …%), but models trained on it predict worse: "
        "the measures disagree, and relations of more than two columns may be lost.",
        "relations",
        "mixed",
        "three columns lose what links them",
        COPIED,
    ),
    Sentence(
        "Pairs of columns have lost their relations (… is kept), but models trained on it do predict: the "
        "measures disagree.",
        "relations",
        "mixed",
        "only three columns are linked",
        APART,
    ),
    Sentence(
        "Pairs of columns are further from the real ones than those of independent columns.",
        "pairs",
        "no",
        "anything that is declared",
        APART,
    ),
    Sentence("A forest trained on it reaches an R² of …, as real data does (…).", "prediction", "yes", COPIED, APART),
    Sentence(
        "A forest trained on it reaches an R² of … where real data gives …: …% (…% to …%) of the way to real data.",
        "prediction",
        "partly",
        HALF,
        COPIED,
    ),
    Sentence(
        "A forest trained on it reaches an R² of … where real data gives …, … independent columns.",
        "prediction",
        "no",
        APART,
        HALF,
    ),
    Sentence(
        "A forest trained on it reaches an R² of …, as real data does (…), but a linear regression does worse "
        "than on real data.",
        "prediction",
        "mixed",
        "a few outliers",
        COPIED,
    ),
    Sentence(
        "A forest trained on it reaches an R² of … where real data gives …; what is missing cannot be "
        "determined at this sample size: at least …% of the way to real data.",
        "prediction",
        "unknown",
        FEW,
        COPIED,
    ),
    Sentence(
        "A forest trained on it reaches an R² of … where real data gives …; no difference from real data is shown.",
        "prediction",
        "unknown",
        "real data without relations",
        COPIED,
    ),
    Sentence(
        "A classifier cannot distinguish it from real records (AUC …, … to …; 0.5 is guessing).",
        "indistinguishable",
        "yes",
        COPIED,
        APART,
    ),
    Sentence(
        "A classifier can distinguish it from real records (AUC …, … to …; 0.5 is guessing).",
        "indistinguishable",
        "no",
        APART,
        COPIED,
    ),
    Sentence(
        "Whether a classifier can distinguish it from real records cannot be determined at this sample size (AUC …, "
        "… to …; 0.5 is guessing).",
        "indistinguishable",
        "unknown",
        FEW,
        COPIED,
    ),
    Sentence("No item is off by more than …%.", "items", "yes", SETS, "one destroyed item"),
    Sentence("Item '3' is off by …% to …%.", "items", "no", "one destroyed item", SETS),
    Sentence(
        "No item is shown to be off by more than 5%, but at this size one could be off by up to …% ('…').",
        "items",
        "unknown",
        FEW_SETS,
        SETS,
    ),
    Sentence(
        "A recurrent network can distinguish it from real records (discriminative score …, … to …; 0 is guessing).",
        "indistinguishable",
        "no",
        "series run backwards",
        "copied series",
    ),
    Sentence(
        "Error of queries, items held together: …, as good as real data.",
        "queries.relative_error_cooccurring",
        "yes",
        SETS,
        FEW_SETS,
    ),
]


@cache
def report_on(release: str) -> Report:
    """Return the report on a release, measured once."""
    return RELEASES[release].report()


def table(sentences: Sequence[Sentence]) -> str:
    """Return the table of the docs: each sentence as it appears in the headline of the release it is true of."""
    rows = ["| the headline says | which is true of | and would be false of |", "|---|---|---|"]
    rows += [f"| {each.said_of(each.true_of)} | {each.true_of} | {each.false_of} |" for each in sentences]
    return "\n".join(rows)


def main() -> None:
    def extend(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--headlines", action="store_true", help="print the whole headline of every release")

    options = parse_arguments("The sentences of a headline, true and false.", extend)
    if options.headlines:
        for name in RELEASES:
            print(f"{name}\n    {report_on(name).headline}\n")
        return
    sentences = SENTENCES[:1] if options.quick else SENTENCES
    print(table(sentences))
    right = sum(each.said_of(each.true_of) is not None for each in sentences)
    wrong = sum(each.said_of(each.false_of) is not None for each in sentences)
    rows = [
        Row("said where they are true", right, "", "all sentences", len(sentences)),
        Row("said where they are false", wrong, "", "all sentences", len(sentences)),
    ]
    publish(rows, options)


if __name__ == "__main__":
    main()
