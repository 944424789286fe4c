"""Create the ledger file of a dataset, or show what was spent from it.

A new ledger: sundog ledger adult.ledger --epsilon 3 --delta 1e-6. What is left: sundog ledger adult.ledger

It is compared with the releases in its folder: exit code 1 if one of them records charges that it lacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, print_warnings_as_lines, say, say_json


def run(
    ledger: Annotated[Path, typer.Argument(help="The ledger file.")],
    epsilon: Annotated[float | None, typer.Option(help="Make a new ledger with this total ε.")] = None,
    delta: Annotated[float, typer.Option(help="The δ of the total budget.")] = 1e-6,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> int:
    """Create or show a ledger; return 1 if charges are missing."""
    from sundog.privacy.ledger import Ledger
    from sundog.release.charge_costs import describe_charge
    from sundog.release.ledger_heads import find_contradictions

    with print_warnings_as_lines():
        opened = Ledger.open(ledger) if epsilon is None else Ledger.create(ledger, epsilon=epsilon, delta=delta)
    lacking = [path.name for path in find_contradictions(opened, [ledger.parent])]
    if as_json:
        say_json({**opened.to_dict(), "contradicted_by": lacking})
        return 1 if lacking else 0
    for name in lacking:
        say(f"NO: {ledger} lacks charges that it had when {name} was made from it; restore the newest copy of it")
    if not opened.private:
        say("NOT PRIVATE: some charges were measured with test noise")
    budget, spent = opened.budget, {method: opened.compute_spent(method) for method in ("pld", "rdp", "moments")}
    say(f"{ledger}: ε = {spent['pld']:.4g} of {budget.epsilon:g} spent (δ = {budget.delta:.3g})")
    say(f"  by rdp {spent['rdp']:.4g}, by the papers' moments {spent['moments']:.4g}")
    for entry in opened.entries:
        for charge in entry.charges:
            say(f"  {entry.time}  {entry.run[:8]}  {charge.purpose:<32.32} {describe_charge(charge)}")
    if epsilon is not None:
        note(f"next: sundog fit DATA --schema SCHEMA --epsilon {epsilon / 2:g} --ledger {ledger} -o OUT.sundog")
    return 1 if lacking else 0
