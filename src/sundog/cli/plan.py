"""Show what a budget allows, before any data is touched: how much noise, how many steps.

Example: sundog plan --records 60000 --epsilon 4 --delta 1e-5 --batch 64 --epochs 20
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sundog.cli.console import say, say_json

if TYPE_CHECKING:
    from sundog.fit.plan import PlannedModel, PlannedTraining


def run(
    epsilon: Annotated[float, typer.Option(help="The ε to spend.")],
    records: Annotated[int | None, typer.Option(min=1, help="About how many records (for training).")] = None,
    delta: Annotated[float | None, typer.Option(help="The δ; by default from the number of records.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Expected batch size.")] = 256,
    epochs: Annotated[float, typer.Option(min=0, help="Passes over the data.")] = 20,
    noise: Annotated[float | None, typer.Option(help="A noise multiplier: ask for steps instead.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Plan the charges of a model of this schema.")] = None,
    model: Annotated[str, typer.Option(help="The model, with --schema.")] = "independent",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Print the plan."""
    from sundog.errors import SundogError
    from sundog.fit.plan import plan_charges, plan_steps
    from sundog.privacy.budget import LARGEST_DELTA, check_budget, compute_default_delta

    if schema is None and records is None:
        raise SundogError("plan needs --records (to plan training) or --schema (to plan the charges of a model)")
    chosen = delta if delta is not None else compute_default_delta(records) if records is not None else LARGEST_DELTA
    budget = check_budget(epsilon, chosen)
    planned: PlannedModel | PlannedTraining
    if schema is not None:
        planned = plan_charges(schema, budget, model=model, records=records)
    else:
        planned = plan_steps(budget, records=records or 1, batch=batch, epochs=epochs, noise_multiplier=noise)
    if as_json:
        say_json(planned.to_dict())
    else:
        say(str(planned))
