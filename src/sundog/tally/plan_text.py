"""The plan of a tally as a page of text: a column for each mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sundog.tally.planning import ModePlan, TallyPlan

_TRUST = {
    "peers": "peers: users mask one another in groups, and each group's sum is opened; no other party is needed",
    "keepers": "keepers: three independent servers hold the masks, and one sum of everybody is opened; private while "
    "two of them do not collude",
}


def describe_plan(plan: TallyPlan) -> str:
    """Return the plan in lines."""
    request = plan.request
    rows: list[tuple[str, Callable[[ModePlan], str]]] = [
        ("", lambda mode: mode.mode),
        ("groups, each with a sum of its own", lambda mode: f"{mode.groups:,}"),
        ("people in a group", lambda mode: f"{mode.group_size:,}"),
        ("of whom must survive", lambda mode: f"{mode.threshold:,}"),
        ("of whom may collude", lambda mode: f"{mode.corrupt:,}"),
        ("bytes of a person's vector", lambda mode: f"{mode.vector_bytes:,}"),
        ("σ of the noise that is charged", lambda mode: f"{mode.sigma:.4g}"),
        ("variance of a person's share of it", lambda mode: f"{mode.share_variance:.4g}"),
        ("spent ε", lambda mode: f"{mode.spent_epsilon:.4f}"),
        ("  more than with Gaussian noise", lambda mode: f"{round(mode.excess_epsilon, 3) + 0.0:+.1%}"),
        ("σ of the noise in the whole total", lambda mode: f"{mode.total_deviation:,.4g}"),
        ("  because each group has all of it", lambda mode: f"× {mode.group_factor:.3g}"),
        ("  because some drop out or collude", lambda mode: f"× {mode.reserve_factor:.3g}"),
        (f"P(too few survive), {request.dropout:.0%} drop out", lambda mode: f"{mode.dropout_failure:.1g}"),
        (f"P(too many collude), {request.corrupt:.0%} do", lambda mode: f"{mode.collusion_failure:.1g}"),
    ]
    width = max(len(label) for label, _ in rows)
    table = [f"{label:<{width}}" + "".join(f"{show(mode):>14}" for mode in plan.modes) for label, show in rows]
    return "\n".join([*_describe_request(plan), "", *table, "", *_TRUST.values(), *_list_warnings(plan)])


def _describe_request(plan: TallyPlan) -> list[str]:
    request, contribution = plan.request, plan.contribution
    cells = f"{request.cells:,} cells"
    if plan.sketch is not None:
        rows, width = plan.sketch
        cells += f", as a Count-Min sketch of {rows} × {width} = {rows * width:,}"
    squares = "" if contribution.l2_squared is None else f", squares up to {contribution.l2_squared:,}"
    return [
        f"{request.users:,} users; {cells}",
        f"a person adds up to {contribution.l1:,}, one cell changes by up to {contribution.largest:,}{squares}: "
        "clients enforce it",
        f"budget of a round: ε = {request.epsilon:g}, δ = {plan.delta:.3g}",
    ]


def _list_warnings(plan: TallyPlan) -> list[str]:
    request, smallest = plan.request, plan.smallest_group
    peers = next(mode for mode in plan.modes if mode.mode == "peers")
    if smallest is None:
        return [f"warning: no group is safe if {request.corrupt:.0%} of the users collude"]
    if peers.group_size < smallest:
        return [
            f"warning: groups of {peers.group_size:,} are small: if {request.corrupt:.0%} of the users collude, use "
            f"{smallest:,} or more"
        ]
    if not math.isclose(peers.group_factor, 1):
        return [f"groups have {smallest:,} people or more, if {request.corrupt:.0%} of the users collude"]
    return []
