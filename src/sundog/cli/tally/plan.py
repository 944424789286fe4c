"""Show what a tally costs, in both modes: groups, thresholds, bytes, noise and what may go wrong.

Example: sundog tally plan --users 1000000 --cells 245000 --items 50 --epsilon 1
"""

from __future__ import annotations

from typing import Annotated

import typer

from sundog.cli.console import say, say_json


def run(
    users: Annotated[int, typer.Option(help="People who may take part.")],
    cells: Annotated[int, typer.Option(help="Counts that are wanted.")],
    epsilon: Annotated[float, typer.Option(help="The ε that a round spends on each person.")],
    delta: Annotated[float | None, typer.Option(help="The δ; by default from the number of users.")] = None,
    items: Annotated[int, typer.Option(help="How many counts a person adds one to, at most.")] = 1,
    largest: Annotated[
        int | None,
        typer.Option(help="What clients let one cell change by; by default 1, or the items in a sketch."),
    ] = None,
    squares: Annotated[
        int | None, typer.Option(help="What clients let the squares of all changes add up to, if less than implied.")
    ] = None,
    sketch: Annotated[
        bool | None, typer.Option("--sketch/--no-sketch", help="Send a Count-Min sketch; by default if it is shorter.")
    ] = None,
    sketch_error: Annotated[float, typer.Option(help="The sketch's error, as a part of the total count.")] = 0.01,
    sketch_failure: Annotated[float, typer.Option(help="The probability of a larger error.")] = 0.01,
    group_size: Annotated[int, typer.Option(help="About how many people mask one another, with peers.")] = 300,
    dropout: Annotated[float, typer.Option(help="The part of the users that you expect to drop out.")] = 0.2,
    corrupt: Annotated[float, typer.Option(help="The part of the users that you expect to collude.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Print the plan."""
    from sundog.tally.planning import TallyRequest, plan_tally

    planned = plan_tally(
        TallyRequest(
            users=users,
            cells=cells,
            epsilon=epsilon,
            delta=delta,
            items=items,
            largest=largest,
            l2_squared=squares,
            sketched=sketch,
            sketch_error=sketch_error,
            sketch_failure=sketch_failure,
            group_size=group_size,
            dropout=dropout,
            corrupt=corrupt,
        )
    )
    if as_json:
        say_json(planned.to_dict())
    else:
        say(str(planned))
