"""Replay as a part of an audit: the fit of a release on some of its members and their neighbours."""

from __future__ import annotations

from typing import Any, ClassVar

from sundog.auditing.finding import Finding, Verdict
from sundog.auditing.fit_audit import FitAudit, RepeatedFit
from sundog.auditing.fit_recipe import FitRecipe
from sundog.auditing.replay.replay import ReplayResult, replay_fit
from sundog.auditing.replay.sources import Table, open_source
from sundog.auditing.replay.values import Kind
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, NotApplicableError, SundogError
from sundog.untrusted_text import to_one_line

_MEMBERS, _EPOCHS = 300, 2  # that are fitted, and passes over them by networks
_NEIGHBOURS, _QUICK_NEIGHBOURS = 100, 30  # to compare
_SECONDS, _QUICK_SECONDS = 120, 15  # of the processor, after which no further neighbour is compared
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
        """Replay the fit: of the members as they were given if possible, and with a learned schema learned again.

        What a few members do not suffice for is left out, the learning before the source; the finding says so.
        """
        whole, declared = fit.recipe.release.schema, fit.recipe.undo_learning()
        obstacle = _find_source_obstacle(fit)
        schemas = [declared] if declared == whole else [declared, whole]
        attempts = [(given, schema) for given in (True, False) for schema in schemas if obstacle is None or not given]
        for is_given, schema in attempts:
            data = fit.source if is_given else _decode(fit.members.take(slice(_MEMBERS)))
            try:
                found = _replay(fit, data, schema)
            except SundogError as error:
                if (is_given, schema) == attempts[-1]:
                    raise NotApplicableError(str(error)) from error
                if is_given:
                    obstacle = str(error)
            else:
                break
        if not found.fitted:
            raise NotApplicableError("all neighbours were refused before anything was charged")
        learns = None if declared == whole else schema == declared
        return _conclude(found, fit, learns=learns, obstacle=None if is_given else obstacle)


def _find_source_obstacle(fit: RepeatedFit) -> str | None:
    """Return why no neighbours can be made of the members as they were given, if so."""
    if fit.labels is not None:
        return "their labels are not part of them"
    try:
        open_source(fit.source, fit.recipe.release.schema, records=1)
    except ArgumentError as error:
        return str(error)
    return None


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
        seconds=_QUICK_SECONDS if fit.quick else _SECONDS,
        progress=fit.progress,
    )


def _conclude(found: ReplayResult, fit: RepeatedFit, *, learns: bool | None, obstacle: str | None) -> Finding:
    differences = [to_one_line(str(each)) for each in found.differences]
    members, kinds = min(_MEMBERS, len(fit.members)), {kind.value: found.compared.get(kind, 0) for kind in Kind}
    what = "nothing but noisy sums differs" if not differences else f"{len(differences)} differences: {differences[0]}"
    summary = f"{found.fitted} neighbours of {members} members were fitted with the same noise, "
    summary += f"{found.draws:,} draws: {what}."
    if obstacle is not None:
        summary += " Their values were replayed, not the source that holds them."
    details = {
        "members": members,
        "neighbours": found.fitted,
        "kinds": kinds,
        "refused": found.refused,
        "draws": found.draws,
        "learned_schema_again": learns,
        "replayed_as_given": obstacle is None,
        "not_tried": _list_untried(found, obstacle),
        "differences": len(differences),
        "first_differences": differences[:_LISTED],
        "seconds": round(found.seconds, 2),
    }
    verdict = Verdict.BROKEN if differences else Verdict.HOLDS
    return Finding(ReplayAudit.name, summary, 0.0, fit.recipe.epsilon, fit.recipe.delta, verdict, details)


def _list_untried(found: ReplayResult, obstacle: str | None) -> list[str]:
    untried = []
    if obstacle is not None:
        untried.append(
            f"how members are read from their source: replay was of their values, as {to_one_line(obstacle)}"
        )
    if found.is_cut:
        untried.append(f"further neighbours: the time for replay was over after {found.seconds:.0f} seconds")
    return untried
