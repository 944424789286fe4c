"""The claims of a headline, one function per claim: an answer, a sentence, and the figures that support it.

Every claim is phrased so that "yes" is good news: no column is off, relations are kept, models learn as from real
records, no model can distinguish the records from real ones. "yes" and "no" are given only where an interval rules out
the other, and "unknown" says what is still possible. `benchmarks/headline.py` has records for which each sentence is
true and records for which it is false, and `tests/evaluation/report/test_claims.py` tests every sentence on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sundog.evaluation.measure import Measure, Metric
from sundog.evaluation.report.number_text import (
    capitalise,
    choose_decimals,
    describe_possible,
    format_decimal,
    format_percent,
    format_range,
)
from sundog.evaluation.report.standing import MARGIN, UNCLEAR, UNKNOWN, Answer, Standing, judge_share

OFF = 0.05  # a column or an item that is off by no more than this counts as kept
GUESSING, NEARLY_GUESSING = 0.5, 0.55  # areas under the curve of a classifier of real and synthetic records
MADE_UP = 0.2  # the most made-up relations, as squares over the real ones, where relations are called kept
LEARNED = 0.25  # the share from which models have learned relations
LEAST = 0.0005  # the least share that is not shown as zero

LEARNERS = {
    "forest": "A forest",
    "logistic": "A logistic regression",
    "ridge": "A linear regression",
    "boosting": "A boosted ensemble of trees",
    "mlp": "A neural network",
    "cnn": "A convolutional network",
}
SCORES = {"auc": "an AUC of", "accuracy": "an accuracy of", "r2": "an R² of", "cnn": "an accuracy of"}


@dataclass(frozen=True)
class ClaimVerdict:
    """The answer to one claim.

    Args:
        claim: columns, relations, pairs, prediction, indistinguishable, items, or the name of a measure.
        verdict: yes, partly, no, mixed (the measures disagree) or unknown (undetermined at this sample size).
        sentence: for a reader; empty where a headline need not mention it.
        evidence: the supporting figures, JSON-compatible.
    """

    claim: str
    verdict: Answer
    sentence: str
    evidence: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "claim": self.claim,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "evidence": dict(self.evidence),
        }


# --- single columns ------------------------------------------------------------------------------------------------


def judge_each(claim: str, kind: str, together: Mapping[str, Measure]) -> ClaimVerdict:
    """Judge that no column (or item) is off; one that is gets named, however good the others are.

    A distance of samples is biased upwards, so the upper ends are valid bounds; the lower ends allow for chance.

    Args:
        claim: the name of the claim.
        kind: column or item.
        together: the distance of each, with simultaneous intervals.
    """
    known = {name: each for name, each in together.items() if math.isfinite(each.value)}
    if not known:
        return ClaimVerdict(claim, "unknown", f"How far single {kind}s are off {UNKNOWN}.", {})
    worst = max(known, key=lambda name: (known[name].low, known[name].value))
    widest = max(known, key=lambda name: known[name].high)
    off = [name for name in known if known[name].low > OFF]
    evidence = {"margin": OFF, kind: worst, **known[worst].to_dict(), "off": off, "none_beyond": known[widest].high}
    if known[widest].high <= OFF:
        sentence = f"No {kind} is off by more than {format_percent(known[widest].high)}."
        return ClaimVerdict(claim, "yes", sentence, evidence)
    if off:
        more = len(off) - 1
        others = f", and {more} more {kind}{'s are' if more > 1 else ' is'} off by more than {OFF:.0%}"
        sentence = f"{capitalise(kind)} {worst!r} is off by {format_range(known[worst])}{others if more else ''}."
        return ClaimVerdict(claim, "no", sentence, evidence)
    hidden = f"at this size one could be off by up to {format_percent(known[widest].high)} ({widest!r})"
    sentence = f"No {kind} is shown to be off by more than {OFF:.0%}, but {hidden}."
    return ClaimVerdict(claim, "unknown", sentence, evidence)


# --- relations between columns -------------------------------------------------------------------------------------


def judge_relations(
    kept: Measure | None, error: Measure | None, weakest: Mapping[str, Any] | None, learned: Sequence[Measure]
) -> ClaimVerdict:
    """Judge that the synthetic data keeps the dependence between columns of the real data.

    Args:
        kept: the share that is kept; None where the real data shows no relations.
        error: the error of relations, missing and made-up ones.
        weakest: the pair with the largest significant loss, if any.
        learned: the scores of models trained on the records, between independent columns (0) and real records (1);
            they must not contradict.
    """
    if kept is None or error is None:
        said = "The real records show no relations between columns that could be measured at this size."
        return ClaimVerdict("relations", "unknown", said, {})
    evidence: dict[str, Any] = {"kept": kept.to_dict(), "error": error.to_dict(), "weakest_pair": weakest}
    evidence["learned"] = [share.to_dict() for share in learned]
    figures = f"{format_percent(kept.value)}, {format_range(kept)}"
    answer = judge_share(kept)
    if answer == "yes":
        return _judge_agreement(figures, error, weakest, learned, evidence)
    if answer == "no":
        most = f"at most {format_percent(kept.high)}" if kept.high >= LEAST else "nothing"
        if any(share.low > LEARNED for share in learned):
            said = f"Pairs of columns have lost their relations ({most} is kept), but models trained on it do predict: "
            return ClaimVerdict("relations", "mixed", f"{said}the measures disagree.", evidence)
        return ClaimVerdict("relations", "no", f"Relations between columns are lost: {most} is kept.", evidence)
    least = f" Most is missing {_name_pair(weakest)}." if weakest is not None else ""
    if answer == "partly":
        said = f"Of the relations between columns {format_percent(kept.value)} ({format_range(kept)}) is kept.{least}"
        return ClaimVerdict("relations", "partly", said, evidence)
    possible = describe_possible(kept)
    unclear = f"How much of the relations between columns is kept {UNCLEAR}{f': {possible}' if possible else ''}."
    said = f"{unclear}{least}"
    return ClaimVerdict("relations", "unknown", said, evidence)


def _judge_agreement(
    figures: str,
    error: Measure,
    weakest: Mapping[str, Any] | None,
    learned: Sequence[Measure],
    evidence: Mapping[str, Any],
) -> ClaimVerdict:
    """Judge relations that are kept on the whole, unless one pair, made-up relations or a model contradict."""
    on_the_whole = f"On the whole relations between columns are kept ({figures})"
    if weakest is not None:
        share = Measure(weakest["value"], weakest["low"], weakest["high"])
        said = f"{on_the_whole}, but not {_name_pair(weakest)} ({format_percent(share.value)}, {format_range(share)})."
        return ClaimVerdict("relations", "partly", said, evidence)
    if error.low > MADE_UP / 2:
        said = f"{on_the_whole}, beside others that are made up or too strong (error {format_range(error)})."
        return ClaimVerdict("relations", "partly", said, evidence)
    if any(share.high < 1 - MARGIN for share in learned):
        said = (
            f"Pairs of columns are related as in the real data ({figures}), but models trained on it predict worse: "
            "the measures disagree, and relations of more than two columns may be lost."
        )
        return ClaimVerdict("relations", "mixed", said, evidence)
    if error.high > MADE_UP:
        said = f"{on_the_whole}; whether others are made up {UNCLEAR}."
        return ClaimVerdict("relations", "unknown", said, evidence)
    return ClaimVerdict("relations", "yes", f"Relations between columns are kept ({figures}).", evidence)


def _name_pair(weakest: Mapping[str, Any] | None) -> str:
    return "" if weakest is None else "between {!r} and {!r}".format(*weakest["columns"])


def judge_pairs(error: Measure) -> ClaimVerdict:
    """Judge that pairs of columns are closer to the real ones than independent columns with the real marginals."""
    evidence = {"error": error.to_dict(), "independent_columns": 1.0}
    if error.low > 1 + MARGIN:
        said = "Pairs of columns are further from the real ones than those of independent columns."
        return ClaimVerdict("pairs", "no", said, evidence)
    return ClaimVerdict("pairs", "yes" if error.high < 1 else "unknown", "", evidence)


# --- models --------------------------------------------------------------------------------------------------------


def judge_prediction(name: str, standing: Standing, others: Mapping[str, Standing]) -> ClaimVerdict:
    """Judge that a model trained on the records predicts real ones as well as a model trained on real records.

    Args:
        name: the name of the main score.
        standing: the standing of that score.
        others: the same score of other models, which must not contradict.
    """
    evidence = _collect_evidence(name, standing) | {other: each.verdict for other, each in others.items()}
    reached = _begin_sentence(name)
    if standing.ceiling is None or standing.short is None:
        value = format_decimal(standing.measure.value, choose_decimals(standing.measure.value))
        said = f"{reached} {value}." if math.isfinite(standing.measure.value) else f"{reached} … it {UNKNOWN}."
        return ClaimVerdict("prediction", "unknown", said, evidence)
    decimals = min(choose_decimals(standing.measure.value), 2)
    value, real = (format_decimal(each, decimals) for each in (standing.measure.value, standing.ceiling.value))
    answer, share = standing.verdict, standing.share
    worse = [other for other, each in others.items() if each.share is not None and each.share.high < 1 - MARGIN]
    if share is None:
        said = f"{reached} {value} where real data gives {real}; {standing.words}."
    elif answer == "yes" and worse:
        answer = "mixed"
        said = (
            f"{reached} {value}, as real data does ({real}), but {_name_model(worse[0])} does worse than on real data."
        )
    elif answer == "yes":
        said = f"{reached} {value}, as real data does ({real}{_describe_shortfall(standing, decimals)})."
    elif answer == "no":
        said = f"{reached} {value} where real data gives {real}, {standing.words}."
    elif answer == "partly":
        said = f"{reached} {value} where real data gives {real}: {standing.words}."
    else:
        said = f"{reached} {value} where real data gives {real}; what is missing {standing.words}."
    return ClaimVerdict("prediction", answer, said, evidence)


def _describe_shortfall(standing: Standing, decimals: int) -> str:
    """Return the largest advantage of real data that the interval allows, as text."""
    hidden = 0.0 if standing.short is None else max(0.0, standing.short.high)
    return f", at most {format_decimal(hidden, decimals + 1)} better" if hidden else ""


def judge_indistinguishable(
    name: str, who: str, score: str, found: Measure, guessing: float, nearly: float
) -> ClaimVerdict:
    """Judge that a model cannot distinguish the records from real ones.

    Args:
        name: the name of the measure.
        who: the model, in words.
        score: the name of the measure in a sentence.
        found: the measure.
        guessing: the value of guessing.
        nearly: the largest value that counts as guessing.
    """
    evidence = {name: found.to_dict(), "guessing": guessing, "margin": nearly - guessing}
    shown = f"{score} {format_decimal(found.value, 2)}"
    ends = f"{format_decimal(found.low, 2)} to {format_decimal(found.high, 2)}; {guessing:g} is guessing"
    if not math.isfinite(found.value):
        return ClaimVerdict(
            "indistinguishable", "unknown", f"Whether {who} can distinguish it from real records {UNKNOWN}.", evidence
        )
    if found.low > guessing:
        said = f"{capitalise(who)} can distinguish it from real records ({shown}, {ends})."
        return ClaimVerdict("indistinguishable", "no", said, evidence)
    if found.high <= nearly:
        said = f"{capitalise(who)} cannot distinguish it from real records ({shown}, {ends})."
        return ClaimVerdict("indistinguishable", "yes", said, evidence)
    said = f"Whether {who} can distinguish it from real records {UNCLEAR} ({shown}, {ends})."
    return ClaimVerdict("indistinguishable", "unknown", said, evidence)


# --- any other measure ---------------------------------------------------------------------------------------------


def judge_measure(name: str, standing: Standing, metric: Metric) -> ClaimVerdict:
    """Judge that a measure is as good as that of real data."""
    value = format_decimal(standing.measure.value, choose_decimals(standing.measure.value))
    said = f"{capitalise(metric.label)}: {value}{f', {standing.words}' if standing.words else ''}."
    return ClaimVerdict(name, standing.verdict, said, _collect_evidence(name, standing))


def _collect_evidence(name: str, standing: Standing) -> dict[str, Any]:
    """Return the measure, its ceiling and floor, and its position between them."""
    ends = {
        name: standing.measure,
        "ceiling": standing.ceiling,
        "floor": standing.floor,
        "share": standing.share,
        "short_of_ceiling": standing.short,
    }
    return {key: None if each is None else each.to_dict() for key, each in ends.items()}


def is_model_score(name: str) -> bool:
    """Return whether a measure is the score of a model trained on the records."""
    *steps, score = name.split(".")
    return score in SCORES and any(step in LEARNERS for step in (*steps, score))


def _name_model(name: str) -> str:
    words = next(LEARNERS[step] for step in name.split(".") if step in LEARNERS)
    return words[:1].lower() + words[1:]


def _begin_sentence(name: str) -> str:
    """Return the beginning of a sentence about a model."""
    return f"{capitalise(_name_model(name))} trained on it reaches {SCORES[name.rpartition('.')[2]]}"
