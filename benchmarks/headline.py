"""Every sentence of a headline, with records for which it is true and records for which it is false.

    python benchmarks/headline.py              # the table of docs/evaluate.md, measured
    python benchmarks/headline.py --headlines  # the whole headline of every release

`tests/evaluation/report/test_claims.py` checks each sentence against this table.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from headlines.releases import RELEASES
from report import Row, parse_arguments, publish

from sundog.evaluation.evaluator import Report


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


def format_table(sentences: Sequence[Sentence]) -> str:
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
    print(format_table(sentences))
    right = sum(each.said_of(each.true_of) is not None for each in sentences)
    wrong = sum(each.said_of(each.false_of) is not None for each in sentences)
    rows = [
        Row("said where they are true", right, "", "all sentences", len(sentences)),
        Row("said where they are false", wrong, "", "all sentences", len(sentences)),
    ]
    publish(rows, options)


if __name__ == "__main__":
    main()
