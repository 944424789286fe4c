"""The headline: the claims that the sections of a report allow, and the answers in a few sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sundog.evaluation.measure import Measure, Measures
from sundog.evaluation.report import claims
from sundog.evaluation.report.claims import ClaimVerdict
from sundog.evaluation.report.standing import Standing, compute_standings
from sundog.evaluation.section import Section

_MAIN = (
    "fidelity.tvd_1way",
    "fidelity.tvd_furthest_column",
    "fidelity.tvd_2way",
    "fidelity.relations_kept",
    "fidelity.propensity_auc",
    "utility.tstr.forest.auc",
    "utility.tstr.forest.r2",
    "images.frechet",
    "images.downstream.cnn",
    "images.downstream.worst_class",
    "series.discriminative_score",
    "sets.item_tvd",
    "sets.furthest_item",
    "queries.relative_error",
    "queries.relative_error_cooccurring",
)
_CLAIMED = (  # measures with a sentence of their own
    "images.frechet",
    "images.downstream.worst_class",
    "queries.relative_error_cooccurring",
)
_DISCRIMINATORS = {
    "fidelity.propensity_auc": ("a classifier", "AUC", claims.GUESSING, claims.NEARLY_GUESSING),
    "series.discriminative_score": (
        "a recurrent network",
        "discriminative score",
        0.0,
        claims.NEARLY_GUESSING - claims.GUESSING,
    ),
}


def list_main_measures(sections: Sequence[Section]) -> list[str]:
    """Return the measures of the headline: the best known ones, and the first of other sections."""
    names = []
    for section in sections:
        names += [name for name in _MAIN if name in section.measures] or list(section.measures)[:1]
    return names


def write_headline(sections: Sequence[Section], ceiling: Measures, floor: Measures) -> str:
    """Return the whole report in a few sentences."""
    said = (verdict.sentence for verdict in reach_verdicts(sections, ceiling, floor))
    return " ".join(sentence for sentence in said if sentence) or "Nothing was measured."


def reach_verdicts(sections: Sequence[Section], ceiling: Measures, floor: Measures) -> list[ClaimVerdict]:
    """Return the answers to all claims that these sections allow."""
    standing = compute_standings(sections, ceiling, floor)
    scores = {name: standing[name] for section in sections for name in _list_model_scores(section)}
    learned = [each.share for each in scores.values() if each.share is not None]
    found: list[ClaimVerdict] = []
    for section in sections:
        claimed = _judge_columns(section, learned) + _judge_models(section, standing) + _judge_discriminators(section)
        found += claimed + _judge_measures(section, standing, claimed=bool(claimed))
    return found


def _judge_columns(section: Section, learned: Sequence[Measure]) -> list[ClaimVerdict]:
    """Judge single columns, their relations, and items of sets."""
    found = []
    details = section.details.get("fidelity", {})
    if "fidelity.tvd_furthest_column" in section.measures:
        found.append(claims.judge_each("columns", "column", _read_measures(details["tvd_columns_together"])))
        if len(details["tvd_columns_together"]) > 1:
            kept, error = (section.measures.get(f"fidelity.relations_{what}") for what in ("kept", "error"))
            found.append(claims.judge_relations(kept, error, details.get("weakest_pair"), learned))
    if "fidelity.pairs_error" in section.measures:
        found.append(claims.judge_pairs(section.measures["fidelity.pairs_error"]))
    if "sets.furthest_item" in section.measures:
        found.append(claims.judge_each("items", "item", _read_measures(section.details["sets"]["furthest_items"])))
    return found


def _read_measures(details: Mapping[str, Mapping[str, Any]]) -> Measures:
    nan = float("nan")
    return {
        name: Measure(*(nan if each[end] is None else each[end] for end in ("value", "low", "high")))
        for name, each in details.items()
    }


def _list_model_scores(section: Section) -> list[str]:
    """Return scores of models trained on the records: of a forest if possible, then the same of others."""
    scored = [name for name in section.measures if claims.is_model_score(name)]
    first = next((name for name in (*_MAIN, *scored) if name in scored), None)
    if first is None:
        return []
    score = first.rpartition(".")[2]
    return [first, *(name for name in scored if name != first and name.endswith(f".{score}"))]


def _judge_models(section: Section, standing: Mapping[str, Standing]) -> list[ClaimVerdict]:
    names = _list_model_scores(section)
    if not names:
        return []
    return [claims.judge_prediction(names[0], standing[names[0]], {name: standing[name] for name in names[1:]})]


def _judge_discriminators(section: Section) -> list[ClaimVerdict]:
    return [
        claims.judge_indistinguishable(name, who, score, section.measures[name], guessing, nearly)
        for name, (who, score, guessing, nearly) in _DISCRIMINATORS.items()
        if name in section.measures
    ]


def _judge_measures(section: Section, standing: Mapping[str, Standing], *, claimed: bool) -> list[ClaimVerdict]:
    """Judge measures without another claim; of a section without any claim, the first."""
    names = [name for name in _CLAIMED if name in section.measures]
    names = names or ([] if claimed else list(section.measures)[:1])
    return [claims.judge_measure(name, standing[name], section.metrics[name]) for name in names]
