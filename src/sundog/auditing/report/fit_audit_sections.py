"""The sections of the page on audits that repeat a fit: replay, canaries and game."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sundog.auditing.finding import Finding
from sundog.auditing.replay.neighbour_counts import describe_counts
from sundog.auditing.report.fit_audit_plots import list_game_plots, plot_canary_bounds
from sundog.evaluation.report.markup import Html, tag
from sundog.evaluation.report.number_text import format_power
from sundog.evaluation.report.report_page import render_settings
from sundog.evaluation.report.svg import render_gallery

_REPLAY = (
    "The fit was run on some of the members, and again on the same members and one more, or one fewer. Each time it "
    "was given the noisy results of the first run. Whatever differs nevertheless would reveal a record: an encoding, "
    "a shape, a file name, a message. The exact sums must differ by no more than was paid for."
)
_VALUES = " The values of these members were replayed: how their source is read was not looked at."
_CANARIES = (
    "A twin of the fit was made, with artificial records among the members, each of which was included by a fair coin. "
    "An attacker who sees what the twin measured guesses which. The verdict is a test of the whole trade-off curve of "
    "what the twin was charged; the bounds hold at the δ below. The twin is not kept."
)
_GAME = (
    "The model was fitted many times, at the budget of the release, to a small table that is a worst case for it; half "
    "of the times with one record more. An attacker who sees every noisy measurement guesses in which. The verdict is "
    "an exact test of the errors against the whole trade-off curve of what was charged."
)


def render_fit_audit(finding: Finding) -> Html | None:
    """Render the section of a finding; None for attacks on membership, which have their own."""
    render = _RENDERERS.get(finding.name)
    if render is not None and not finding.details:
        return tag("section", tag("h2", finding.name.capitalize()), tag("p", finding.summary, class_="reading"))
    return None if render is None else tag("section", *render(finding))


def _render_replay(finding: Finding) -> list[Html]:
    figures = finding.details
    source = "" if figures["replayed_as_given"] else _VALUES
    differences = [tag("li", each) for each in figures["first_differences"]]
    left = figures["differences"] - len(differences)
    if left:
        differences.append(tag("li", f"and {left:,} more"))
    known = {
        "members": f"{figures['members']:,}",
        "neighbours compared": figures["neighbours"],
        "neighbours refused before anything was charged": figures["refused"],
        "draws compared": f"{figures['draws']:,}",
        "differences": figures["differences"],
    }
    return [
        tag("h2", "Replay"),
        tag("p", f"{_REPLAY} {describe_counts(figures['kinds'])}{source}", class_="reading"),
        render_settings(known),
        tag("ul", *differences, class_="notes") if differences else tag("p", "Nothing differs.", class_="reading"),
    ]


def _render_canaries(finding: Finding) -> list[Html]:
    figures = finding.details
    known = {
        "members": f"{figures['members']:,}",
        "canaries": f"{figures['canaries']:,}",
        "right guesses": f"{figures['right']:,} of {figures['guesses']:,}",
        "ε by f-DP, if the noise is Gaussian": f"at least {figures['gaussian_bound']:.2f}",
        "ε by Steinke et al., for any mechanism": f"at least {figures['steinke_bound']:.2f}",
        "charged": f"ε = {finding.promise:.3g} at δ = {format_power(finding.delta)}",
        **_describe_test(figures),
    }
    pictures = render_gallery([plot_canary_bounds(finding)], "canaries")
    return [tag("h2", "Canaries"), tag("p", _CANARIES, class_="reading"), render_settings(known), pictures]


def _render_game(finding: Finding) -> list[Html]:
    figures, head = finding.details, [tag("h2", "Game"), tag("p", _GAME, class_="reading")]
    known = {
        "model": figures["model"],
        "fits": f"{figures['runs']:,}",
        "ε at one threshold, for any mechanism": f"at least {figures['threshold_bound']:.2f}",
        "ε by the curve, if only the scale of the noise may be wrong": f"at least {figures['curve_bound']:.2f}",
        "charged": f"ε = {finding.promise:.3g} at δ = {format_power(finding.delta)}",
        **_describe_test(figures),
    }
    return [*head, render_settings(known), render_gallery(list_game_plots(finding), "game")]


def _describe_test(figures: Mapping[str, Any]) -> dict[str, str]:
    return {
        "p-value of what was charged": format_power(figures["p_value"]),
        "contradicted at or below": format_power(1 - figures["confidence"]),
    }


_RENDERERS: Mapping[str, Callable[[Finding], list[Html]]] = {
    "replay": _render_replay,
    "canaries": _render_canaries,
    "game": _render_game,
}
