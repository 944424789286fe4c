"""Evaluation of a release, or of any synthetic data, against the real data."""

from __future__ import annotations

import errno
import importlib.metadata
import json
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundog import notebook
from sundog.data.columns import Form
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.inputs import ROWS, EvaluationRequest, Inputs, load_release, read_inputs
from sundog.evaluation.measure import Measures, nest_names
from sundog.evaluation.section import Section
from sundog.files import replace_file
from sundog.privacy.ledger import Ledger
from sundog.progress import Progress, silent
from sundog.release.certificate import Certificate

if TYPE_CHECKING:
    from sundog.evaluation.publication import Publication
    from sundog.evaluation.report.claims import ClaimVerdict

Part = Callable[[Comparison], Section]

REFERENCES = ("other real records", "independent columns")  # titles of ceiling and floor
_TURNS = ("{}", "{} of real data", "{} of independent columns")


@dataclass(frozen=True)
class Report:
    """The figures of one evaluation and everything needed to show them.

    Args:
        name: the name of the evaluated data.
        sections: the parts, each with its measures, details and pictures.
        bounds: the same sections for real records and for independent columns.
        about: the settings needed to repeat the evaluation.
        notes: what a reader must know.
        certificate: the certificate, if the data is a release.
        published: the measures paid for with budget; everything else is private.
    """

    name: str
    sections: tuple[Section, ...]
    bounds: Bounds
    about: Mapping[str, str | int | float | None]
    notes: tuple[str, ...] = ()
    certificate: Certificate | None = None
    published: Measures = field(default_factory=dict)

    @property
    def measures(self) -> Measures:
        """All measures by their stable names."""
        return _collect_measures(self.sections)

    @property
    def ceiling(self) -> Measures:
        """The same measures for real records in place of synthetic ones."""
        return _collect_measures(self.bounds.ceiling)

    @property
    def floor(self) -> Measures:
        """The same measures for independently shuffled columns."""
        return _collect_measures(self.bounds.floor)

    @property
    def headline(self) -> str:
        """A summary in a few sentences."""
        from sundog.evaluation.report.headline import write_headline

        return write_headline(self.sections, self.ceiling, self.floor)

    @property
    def verdicts(self) -> list[ClaimVerdict]:
        """The claims of the headline: the answer to each, and the figures that support it."""
        from sundog.evaluation.report.headline import reach_verdicts

        return reach_verdicts(self.sections, self.ceiling, self.floor)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary, nested by the stable names, with ceiling and floor."""
        details = {name: value for section in self.sections for name, value in section.details.items()}
        return {
            "private": "measured on private records without a budget; not for publication, except `published`",
            "about": {"name": self.name, **self.about},
            "headline": self.headline,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "notes": [*self.notes, *(note for section in self.sections for note in section.notes)],
            **nest_names(self.measures),
            "ceiling": nest_names(self.ceiling),
            "floor": nest_names(self.floor),
            "published": nest_names(self.published),
            "details": details,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }

    def _repr_html_(self) -> str:
        """Return the headline and its figures as HTML for a notebook; they are as private as the records."""
        from sundog.evaluation.report.headline import list_main_measures

        stands = (self.measures, self.ceiling, self.floor)
        rows = [
            (name, *(f"{each[name].value:.4f}" if name in each else "" for each in stands))
            for name in list_main_measures(self.sections)
        ]
        head = ("", "this", *REFERENCES)
        private = "measured on private records without a budget: not for publication"
        return notebook.build_fragment(
            self.name,
            notebook.build_paragraph(self.headline),
            notebook.build_table(rows, head),
            notebook.build_paragraph(private),
        )

    def to_text(self) -> str:
        """Return the headline and a table of its measures, for a terminal."""
        from sundog.evaluation.report.headline import list_main_measures
        from sundog.evaluation.report.text_table import format_table

        columns = [("this", self.measures), *zip(REFERENCES, (self.ceiling, self.floor), strict=True)]
        return f"{self.headline}\n{format_table(list_main_measures(self.sections), columns)}"

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained HTML page, and write it to `path` if given."""
        from sundog.evaluation.report.report_page import render_page

        return write_text(render_page(self), path)

    def to_json(self, path: str | Path) -> None:
        """Write `to_dict` to a file."""
        write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def evaluate(
    synthetic: Any,
    *,
    real: Any,
    holdout: Any = None,
    target: str | None = None,
    schema: Schema | None = None,
    labels: Any = None,
    holdout_labels: Any = None,
    n: int | None = None,
    rows: int = ROWS,
    seed: int = 0,
    publish: float | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress = silent,
) -> Report:
    """Compare a release, or any synthetic data, with the real data. The figures are as private as the real data.

    >>> import pandas as pd
    >>> real = pd.DataFrame({"age": [31, 47, 25, 62] * 50, "sex": ["f", "m"] * 100})
    >>> age, sex = {"type": "integer", "min": 18, "max": 90}, {"type": "categorical", "values": ["f", "m"]}
    >>> report = evaluate(real, real=real, schema=Schema.from_dict({"columns": {"age": age, "sex": sex}}))
    >>> report.measures["fidelity.tvd_1way"].value
    0.0

    Args:
        synthetic: a release or the path of one, or the synthetic records of any tool: a file, a table, arrays.
        real: the real records.
        holdout: real records that the release was not fitted on; by default a quarter of `real` is used.
        target: the column to predict.
        schema: the schema of data that is not a release; drafted from the real data by default.
        labels: class labels of `real`, when they are not part of it.
        holdout_labels: those of `holdout`.
        n: how many records to draw from a release; by default as many as it was fitted on.
        rows: the most records of each kind to use; of more, a random subset is used.
        seed: the same seed gives the same figures.
        publish: the ε to spend on figures that may be published.
        ledger: the ledger of the real data to charge, or its path.
        progress: is called with the current stage and the share done.
    """
    request = EvaluationRequest(
        synthetic, real, holdout, target, schema, labels, holdout_labels, n=n, rows=rows, seed=seed, progress=progress
    )
    publication = _plan_publication(request, publish, ledger)
    inputs = read_inputs(request, whole_holdout=publication is not None)
    if inputs.warning is not None:
        warnings.warn(inputs.warning, stacklevel=2)
    report = build_report(inputs)
    return report if publication is None else _add_published(report, inputs, publication)


# --- sections ------------------------------------------------------------------------------------------------------


def choose_parts(comparison: Comparison) -> dict[str, Part]:
    """Return the parts that apply to these records, by the name shown as progress."""
    schema = comparison.real.schema
    scalars = list(schema.scalars)
    parts: dict[str, Part] = {}
    if scalars:
        from sundog.evaluation.tables.fidelity import evaluate_fidelity

        parts["fidelity"] = evaluate_fidelity
    if schema.rules:
        from sundog.evaluation.tables.rule_violations import evaluate_rules

        parts["rules"] = evaluate_rules
    if comparison.target in scalars and len(scalars) > 1:
        from sundog.evaluation.prediction.utility import evaluate_utility

        parts["utility"] = evaluate_utility
    if len(scalars) > 1:
        from sundog.evaluation.prediction.propensity import evaluate_propensity

        parts["propensity"] = evaluate_propensity
    for name, column in schema.columns.items():
        if column.form in _ARRAY_PARTS and column.form not in parts:  # the first column of each form
            parts[column.form.value] = _ARRAY_PARTS[column.form](name)
    return parts


def _load_sets_part(name: str) -> Part:
    from sundog.evaluation.sets.set_evaluation import evaluate_sets

    return lambda comparison: evaluate_sets(comparison, name)


def _load_images_part(name: str) -> Part:
    from sundog.evaluation.images.image_evaluation import evaluate_images

    return lambda comparison: evaluate_images(comparison, name)


def _load_series_part(name: str) -> Part:
    from sundog.evaluation.series.series_evaluation import evaluate_series

    return lambda comparison: evaluate_series(comparison, name)


_ARRAY_PARTS: Mapping[Form, Callable[[str], Part]] = {
    Form.SET: _load_sets_part,
    Form.IMAGE: _load_images_part,
    Form.SERIES: _load_series_part,
}


Sections = tuple[Section, ...]


@dataclass(frozen=True)
class Bounds:
    """The sections for real records in place of synthetic ones, and for independent columns."""

    ceiling: Sections
    floor: Sections


def build_report(inputs: Inputs, bounds: Bounds | None = None) -> Report:
    """Measure every part for the synthetic records and, unless given, for the bounds."""
    comparison = inputs.comparison
    turns = 3 if bounds is None else 1
    sections = _measure_sections(comparison, 0, turns)
    if bounds is None:
        bounds = Bounds(
            _measure_sections(comparison.build_ceiling(), 1, turns),
            _measure_sections(comparison.build_floor(), 2, turns),
        )
    return Report(
        name=inputs.name,
        sections=_add_measured_pairs(tuple(map(_add_roc_plot, sections, bounds.ceiling, bounds.floor)), bounds, inputs),
        bounds=bounds,
        about=_describe_run(inputs),
        notes=(*([f"{inputs.warning}."] if inputs.warning else []), *inputs.notes),
        certificate=None if inputs.release is None else inputs.release.certificate,
    )


def _measure_sections(comparison: Comparison, turn: int, turns: int) -> Sections:
    parts = choose_parts(comparison)
    found = []
    for place, (name, part) in enumerate(parts.items()):
        comparison.progress(_TURNS[turn].format(name), (turn + place / len(parts)) / turns)
        found.append(part(comparison))
    return tuple(found)


def _add_roc_plot(section: Section, ceiling: Section, floor: Section) -> Section:
    """Add the plot of ROC curves, which also needs the sections of the bounds."""
    if "roc" not in section.details:
        return section
    from sundog.evaluation.prediction.utility_plots import plot_roc

    return replace(section, pictures=[plot_roc(section, ceiling, floor), *section.pictures])


def _add_measured_pairs(sections: Sections, bounds: Bounds, inputs: Inputs) -> Sections:
    """Add the section about the pairs that the model of a release measured, after that with their associations."""
    if inputs.release is None or not sections or "fidelity" not in sections[0].details:
        return sections
    from sundog.evaluation.tables.measured_pairs import evaluate_measured_pairs

    found = evaluate_measured_pairs(inputs.release, sections[0], bounds.floor[0])
    return sections if found is None else (sections[0], found, *sections[1:])


def _collect_measures(sections: Iterable[Section]) -> Measures:
    return {name: measure for section in sections for name, measure in section.measures.items()}


# --- publication and files -----------------------------------------------------------------------------------------


def _plan_publication(
    request: EvaluationRequest, epsilon: float | None, ledger: Ledger | str | Path | None
) -> Publication | None:
    """Plan what will be published, before any real record is read."""
    if (epsilon is None) != (ledger is None):
        raise DataError("publish needs both an ε and a ledger of the real data to charge it to; give both or neither")
    if epsilon is None or ledger is None:
        return None
    from sundog.evaluation.publication import Publication

    release = load_release(request.synthetic)
    opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    models: tuple[str, ...] = ()
    if release is not None and request.holdout is not None:
        models = _name_accuracies(release.schema, request.target)
    return Publication.plan(release, models, epsilon=epsilon, ledger=opened)


def _name_accuracies(schema: Schema, target: str | None) -> tuple[str, ...]:
    """Return the names of the accuracies that will be measured."""
    from sundog.evaluation.prediction.learners import CLASSIFIERS
    from sundog.evaluation.prediction.prediction_task import is_quantity

    column = schema.columns.get(target or "")
    if column is None or column.shape or is_quantity(column) or len(schema.columns) < 2:
        return ()
    return tuple(f"utility.tstr.{model}.accuracy" for model in CLASSIFIERS)


def _add_published(report: Report, inputs: Inputs, publication: Publication) -> Report:
    """Measure the published figures, charge them, and add them to the report."""
    from sundog.evaluation.publication import describe_price

    inputs.comparison.progress("measuring with budget", 1.0)
    tested = 0 if inputs.held_out is None else len(inputs.held_out)
    right = {name: round(report.measures[name].value * tested) for name in publication.models}
    found = publication.measure(inputs.real, inputs.comparison.synthetic, right, tested)
    return replace(report, published=found, notes=(*report.notes, describe_price(publication.run.budget)))


def _describe_run(inputs: Inputs) -> dict[str, str | int | float | None]:
    versions = {name: importlib.metadata.version(name) for name in ("sundog", "numpy", "scikit-learn", "torch")}
    return {
        "target": inputs.comparison.target,
        **{f"{kind} records": count for kind, count in inputs.counts.items()},
        "seed": inputs.comparison.seed,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "python": platform.python_version(),
    }


def write_text(text: str, path: str | Path | None) -> str:
    """Write a text to a file, if one is given, completely or not at all, readable by its owner only; return it."""
    if path is not None:
        try:
            with replace_file(Path(path), owner_only=True) as file:
                file.write(text.encode())
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full" if full else error.strerror or str(error)
            fix = "free space or choose another folder" if full else "choose another folder"
            raise DataError(f"{path}: cannot be written ({reason}); nothing was kept, {fix}") from None
    return text
