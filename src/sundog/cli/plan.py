"""Say what a budget buys, before any data is touched: how much noise, how many steps.

Example: sundog plan --records 60000 --epsilon 4 --delta 1e-5 --batch 64 --epochs 20
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from sundog.cli.console import say, say_json


def run(
    epsilon: Annotated[float, typer.Option(help="The ε to spend.")],
    records: Annotated[int | None, typer.Option(min=1, help="About how many records (for training).")] = None,
    delta: Annotated[float | None, typer.Option(help="The δ; by default from the number of records.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Expected batch size.")] = 256,
    epochs: Annotated[float, typer.Option(min=0, help="Passes over the data.")] = 20,
    noise: Annotated[float | None, typer.Option(help="A noise multiplier: ask for steps instead.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Plan a count-based model of this schema instead.")] = None,
    model: Annotated[str, typer.Option(help="The count-based model, with --schema.")] = "independent",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Plans."""
    from sundog.errors import SundogError
    from sundog.privacy.budget import LARGEST_DELTA, default_delta, promised

    if schema is None and records is None:
        raise SundogError("plan needs --records (to plan training) or --schema (to plan a count-based model)")
    chosen = delta if delta is not None else default_delta(records) if records is not None else LARGEST_DELTA
    budget = promised(epsilon, chosen)
    if schema is not None:
        plan, text = _model_plan(schema, model, budget, records)
    else:
        plan, text = _training_plan(budget, records or 1, batch, epochs, noise)
    if as_json:
        say_json(plan)
    else:
        say(text)


def _training_plan(
    budget: Any, records: int, batch: int, epochs: float, noise: float | None
) -> tuple[dict[str, Any], str]:
    from sundog.errors import SundogError
    from sundog.privacy.accountant import epsilon_spent
    from sundog.privacy.calibration import noise_multiplier_for, steps_for, training_plan

    if noise is not None and not 1e-9 <= noise <= 1e15:
        raise SundogError(f"--noise must be between 1e-9 and 1e15, not {noise:g}")
    if batch > records:
        raise SundogError(f"--batch {batch} is larger than --records {records}; lower it")
    rate = batch / records
    if noise is None:
        steps = max(1, math.ceil(epochs * records / batch))
        noise = noise_multiplier_for(epsilon=budget.epsilon, delta=budget.delta, sample_rate=rate, steps=steps)
    else:
        steps = steps_for(noise_multiplier=noise, sample_rate=rate, epsilon=budget.epsilon, delta=budget.delta)
        if steps == 0:
            raise SundogError(f"--noise {noise:g} does not allow a single step at ε = {budget.epsilon:g}; raise it")
    charges = training_plan(noise_multiplier=noise, sample_rate=rate, steps=steps)
    spent = {m: epsilon_spent(charges, delta=budget.delta, method=m) for m in ("pld", "rdp", "moments")}
    plan = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "records": records,
        "sample_rate": rate,
        "expected_batch": batch,
        "steps": steps,
        "epochs": steps * rate,
        "noise_multiplier": noise,
        "spent": spent,
    }
    text = (
        f"budget            ε = {budget.epsilon:g}, δ = {budget.delta:.3g}, {records:,} records\n"
        f"sample rate       {rate:.4g}  (each record in each step, by itself; {batch} expected)\n"
        f"steps             {steps:,}  ({steps * rate:.4g} epochs)\n"
        f"noise multiplier  {noise:.4f}  (standard deviation of the noise on the sum ÷ clipping norm)\n"
        f"ε spent           {spent['pld']:.4f} by pld (the claim), {spent['rdp']:.4f} by rdp, "
        f"{spent['moments']:.4f} by the papers' moments\n"
        f"per record        noise of {noise / batch:.4g} × the clipping norm on the average gradient"
    )
    return plan, text


def _model_plan(path: Path, model: str, budget: Any, records: int | None) -> tuple[dict[str, Any], str]:
    from sundog.data.bin_refinement import Refinement
    from sundog.data.schema import Schema
    from sundog.errors import SundogError
    from sundog.models.auto import best_model
    from sundog.models.registry import AUTO, get_model
    from sundog.release.shares import describe

    schema = Schema.load(path)
    if not schema.complete:
        raise SundogError(f"{path}: columns to be learned cannot be planned before they are; declare them")
    kind = get_model(best_model(schema, epsilon=budget.epsilon, records=records) if model == AUTO else model)
    refinement = Refinement.plan(schema, epsilon=budget.epsilon, delta=budget.delta).charges
    plan = kind.plan(schema, budget, already=refinement, records=records, settings=dict(kind.defaults))
    lines = [f"budget: ε = {budget.epsilon:g}, δ = {budget.delta:.3g}; model {kind.name}"]
    charges = [*refinement, *plan.charges]
    lines += [f"  {charge.purpose:<40.40} {describe(charge)}" for charge in charges]
    values = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "model": kind.name,
        "charges": [charge.model_dump() for charge in charges],
    }
    return values, "\n".join(lines)
