"""The curves of membership attacks, beside what the certificate allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sundog.auditing.membership import AttackResult, MembershipResults
from sundog.auditing.tradeoff_curve import compute_tradeoff_curve
from sundog.evaluation.section import Picture
from sundog.release.certificate import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 5  # attacks
_LEAST = 1e-4  # of a rate that is drawn
_LINES = ("-", "--", "-.", (0, (5, 1)), "-")

CAPTION = (
    "The share of members found, against the share of non-members taken for members, on logarithmic axes: what "
    "matters is on the left, where few others are accused. The dotted line is guessing. The attacks with the highest "
    "bounds are shown, and of equal ones those that find most at 1% false alarms."
)
ALLOWED = (
    " No attack on a single record can stay above the thick line, which follows from the charges of the certificate. "
    "The curves are of samples, without their intervals: they may cross it by chance, mostly on the left, where few "
    "records are."
)


def plot_curves(results: MembershipResults, certificate: Certificate | None) -> Picture:
    """Plot the best attacks and, if there is a certificate, the most that it allows."""
    shown = sorted(results.attacks, key=lambda each: (each.bound.epsilon, each.measures["tpr_at_0.01"].value))
    caption = CAPTION + (ALLOWED if certificate is not None else "")
    return Picture(
        "Members found, against false alarms", caption, lambda: _draw(shown[::-1][:SHOWN], certificate), wide=True
    )


def _draw(results: list[AttackResult], certificate: Certificate | None) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5.0), layout="constrained")
    axes = figure.subplots()
    axes.plot([_LEAST, 1], [_LEAST, 1], color="black", linestyle=":", linewidth=1)
    for result, line in zip(results, _LINES, strict=False):
        false, true = (np.maximum(result.curve[rate], _LEAST) for rate in ("fpr", "tpr"))
        axes.plot(false, true, linestyle=line, drawstyle="steps-post", label=result.name)
    if certificate is not None:
        _draw_allowed(axes, certificate)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(_LEAST, 1)
    axes.set_ylim(_LEAST, 1.05)
    axes.set_xlabel("false alarms: share of non-members")
    axes.set_ylabel("share of members found")
    axes.legend(loc="lower right")
    return figure


def _draw_allowed(axes: Axes, certificate: Certificate) -> None:
    alarms = np.geomspace(_LEAST, 1, 200)
    found = 1 - compute_tradeoff_curve(certificate.charges)(alarms)
    axes.plot(alarms, found, color="black", linewidth=2.4, alpha=0.6, label="most that the certificate allows")
