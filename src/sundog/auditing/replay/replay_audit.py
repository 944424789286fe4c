"""Replay as a part of an audit: the fit of a release on some of its members and their neighbours."""

from __future__ import annotations

from typing import Any, ClassVar

from sundog.auditing.finding import Finding, Verdict
from sundog.auditing.fit_audit import FitAudit, RepeatedFit
from sundog.auditing.fit_recipe import FitRecipe
from sundog.auditing.replay.neighbours import Table, to_table
from sundog.auditing.replay.replay import ReplayResult, replay_fit
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, SundogError
from sundog.untrusted_text import to_one_line

_MEMBERS, _EPOCHS = 300, 2  # that are fitted, and passes over them by networks
_NEIGHBOURS, _QUICK_NEIGHBOURS = 12, 4
_LISTED = 20  # differences


class ReplayAudit(FitAudit):
    """The fit on neighbouring inputs, with the same noise: nothing but noisy sums may differ."""

    name: ClassVar[str] = "replay"
    is_random: ClassVar[bool] = False

    def find_obstacle(self, recipe: FitRecipe) -> str | None:
        """Return that public columns have other neighbours, if so."""
        if any(column.public for column in recipe.release.schema.columns.values()):
            return "some columns are public, and neighbours differ in private values alone"
        return None

    def run(self, fit: RepeatedFit, *, failure: float) -> Finding:  # noqa: ARG002  nothing is left to chance
        """Replay the fit, and the learning of the schema if a few members suffice for it."""
        whole, declared = fit.recipe.release.schema, fit.recipe.undo_learning()
        values = _decode(fit.members.take(slice(_MEMBERS)))
        attempts = [(_choose_data(fit, values), declared), (values, declared), (values, whole)]
        for place, (data, schema) in enumerate(attempts):
            try:
                found = _replay(fit, data, schema)
            except SundogError:
                if place == len(attempts) - 1:
                    raise
            else:
                break
        if found.tried == found.refused:
            raise SundogError("all neighbours were refused before anything was charged")
        return _conclude(found, fit, learns=None if declared == whole else schema == declared)


def _choose_data(fit: RepeatedFit, values: Table) -> Any:
    """Return the members as they were given if neighbours can be written so, or else their values."""
    if fit.labels is not None:
        return values
    try:
        to_table(fit.source, fit.recipe.release.schema, records=1)
    except ArgumentError:
        return values
    return fit.source


def _decode(records: Records) -> Table:
    """Return the values of all columns, and a number for each person."""
    values = {
        name: (column.to_json if column.form in (Form.SCALAR, Form.SET) else column.to_values)(records.codes[name])
        for name, column in records.schema.columns.items()
    }
    return values if records.unit is None else {**values, str(records.schema.unit): records.unit.tolist()}


def _replay(fit: RepeatedFit, data: Any, schema: Schema) -> ReplayResult:
    recipe = fit.recipe
    settings, component = dict(recipe.settings), getattr(recipe.configuration, "component", recipe.configuration)
    if hasattr(component, "epochs"):
        settings["epochs"] = min(component.epochs or _EPOCHS, _EPOCHS)
    if schema.records is not None:
        schema = schema.model_copy(update={"records": min(_MEMBERS, len(fit.members))})
    return replay_fit(
        data,
        schema,
        model=recipe.model,
        epsilon=recipe.epsilon,
        delta=recipe.requested_delta,
        clusters=recipe.clusters,
        settings=settings,
        seed=fit.seed,
        records=_MEMBERS,
        most=_QUICK_NEIGHBOURS if fit.quick else _NEIGHBOURS,
        progress=fit.progress,
    )


def _conclude(found: ReplayResult, fit: RepeatedFit, *, learns: bool | None) -> Finding:
    differences = [to_one_line(str(each)) for each in found.differences]
    compared, members = found.tried - found.refused, min(_MEMBERS, len(fit.members))
    what = "nothing but noisy sums differs" if not differences else f"{len(differences)} differences: {differences[0]}"
    summary = (
        f"{compared} neighbours of {members} members were fitted with the same noise, {found.draws:,} draws: {what}."
    )
    details = {
        "members": members,
        "neighbours": compared,
        "refused": found.refused,
        "draws": found.draws,
        "learned_schema_again": learns,
        "differences": len(differences),
        "first_differences": differences[:_LISTED],
        "seconds": round(found.seconds, 2),
    }
    verdict = Verdict.BROKEN if differences else Verdict.HOLDS
    return Finding(ReplayAudit.name, summary, 0.0, fit.recipe.epsilon, fit.recipe.delta, verdict, details)
