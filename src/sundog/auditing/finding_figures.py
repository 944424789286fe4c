"""The figures of audits that repeat a fit, as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sundog.auditing.finding import Finding
from sundog.auditing.replay.neighbour_counts import describe_counts
from sundog.evaluation.report.number_text import format_power

_WIDTH = 9  # of a name


def list_figures(finding: Finding) -> list[str]:
    """Return the figures of a finding in lines; none for attacks on membership, which have a table, or without figures.

    >>> from sundog.auditing.finding import Verdict
    >>> figures = {"neighbours": 12, "refused": 0, "draws": 504, "differences": 0, "first_differences": []}
    >>> figures["kinds"] = {"extreme values": 2, "copies": 10}
    >>> list_figures(Finding("replay", "", 0.0, 1.0, 1e-6, Verdict.HOLDS, figures))
    ['  replay     12 neighbours compared, 0 refused, 504 draws, 0 differences', \
'             Compared were: extreme values 2, copies 10.']
    """
    write = _WRITERS.get(finding.name)
    lines = [] if write is None or not finding.details else write(finding, finding.details)
    return [f"  {finding.name if place == 0 else '':{_WIDTH}}  {line}" for place, line in enumerate(lines)]


def _write_replay(_: Finding, figures: Mapping[str, Any]) -> list[str]:
    counted = (
        f"{figures['neighbours']} neighbours compared, {figures['refused']} refused, {figures['draws']:,} draws, "
        f"{figures['differences']} differences"
    )
    return [counted, describe_counts(figures["kinds"]), *figures["first_differences"]]


def _write_canaries(finding: Finding, figures: Mapping[str, Any]) -> list[str]:
    return [
        f"{figures['right']:,} of {figures['guesses']:,} guesses right, {figures['canaries']:,} canaries; "
        f"ε ≥ {finding.bound:.2f}, at best {finding.provable:.2f}; ε ≥ {figures['gaussian_bound']:.2f} by f-DP if the "
        f"noise is Gaussian; {_describe_charge(finding)}; p = {figures['p_value']:.2g}"
    ]


def _write_game(finding: Finding, figures: Mapping[str, Any]) -> list[str]:
    low, high = (figures["mu"][end] for end in ("low", "high"))
    value = figures["mu"]["value"]
    mu = "infinite" if value is None else f"{value:.2f} ({low:.2f} to {high:.2f})"
    return [
        f"{figures['runs']:,} fits; ε ≥ {finding.bound:.2f}, at best {finding.provable:.2f}; "
        f"ε ≥ {figures['curve_bound']:.2f} by the curve if only the scale of the noise is wrong; "
        f"{_describe_charge(finding)}; p = {figures['p_value']:.2g}; μ = {mu}, claimed {figures['promised_mu']:.2f}"
    ]


def _describe_charge(finding: Finding) -> str:
    return f"charged ε = {finding.promise:.3g} at δ = {format_power(finding.delta)}"


_WRITERS: Mapping[str, Callable[[Finding, Mapping[str, Any]], list[str]]] = {
    "replay": _write_replay,
    "canaries": _write_canaries,
    "game": _write_game,
}
