"""Fit a model to private data and write a release that anybody can sample.

Example: sundog fit adult.csv.gz --schema adult.schema.yaml --epsilon 1 -o adult.sundog

A mixture: sundog fit digits.npz --schema digits.schema.yaml --epsilon 4 --model rbm --clusters 10 -o digits.sundog
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sundog.cli.console import note, progress, say, say_json
from sundog.cli.streams import Format, resolve_sources


def run(
    data: Annotated[
        str,
        typer.Argument(
            help="The private data: csv, JSON lines, parquet, Arrow, xlsx, npz, idx or transactions; a database URL; "
            "- for stdin."
        ),
    ],
    schema: Annotated[Path, typer.Option(help="The schema: what is publicly known about the data.")],
    epsilon: Annotated[float, typer.Option(help="The ε this release may spend.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The release to write.")],
    delta: Annotated[float | None, typer.Option(help="The δ; by default 1/(10·n^1.1), at most 1e-5.")] = None,
    model: Annotated[str, typer.Option(help="The model: auto, independent, rbm, vae or gan.")] = "auto",
    clusters: Annotated[
        int,
        typer.Option(min=1, help="More than one: a mixture, with a model (any but gan) for each cluster of records."),
    ] = 1,
    public: Annotated[
        str | None, typer.Option(help="Public data of the same schema, from which a clustering or a GAN can start.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="A ledger file shared by all fits on this data.")] = None,
    labels: Annotated[str | None, typer.Option(help="Class labels, when they are a file of their own.")] = None,
    format_: Format = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int | None, typer.Option(help="Fixes the initialisation, never privacy noise.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the model, as name=value; `sundog models MODEL` lists them."),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Resume an interrupted fit.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the release if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
    unsafe_noise_seed: Annotated[
        int | None, typer.Option(help="For tests: repeatable noise. The release is then NOT PRIVATE.")
    ] = None,
    unsafe_show_loss: Annotated[
        bool,
        typer.Option(
            "--unsafe-show-loss",
            help="Show the training loss on private records. NOT PRIVATE: for your eyes only.",
        ),
    ] = False,
) -> None:
    """Fit a model and save its release."""
    from sundog.data.writing.contact_sheet import list_drawable
    from sundog.fit.preflight import refuse_fit_output
    from sundog.fit.synthesizer import Synthesizer
    from sundog.models.registry import AUTO
    from sundog.privacy.noise import NoiseSource
    from sundog.release.private import private_path

    inputs = {"data": data, "schema": schema, "labels": labels, "public data": public, "ledger": ledger}
    refuse_fit_output(out, inputs, overwrite=force)
    read = resolve_sources(format_, data=data, public=public, labels=labels)
    synthesizer = Synthesizer(
        model=model,
        epsilon=epsilon,
        delta=delta,
        clusters=clusters,
        public=read["public"],
        device=device,
        ledger=ledger,
        seed=seed,
        settings=_parse_settings(set_ or []),
        noise=None if unsafe_noise_seed is None else NoiseSource.seeded(unsafe_noise_seed),
        show_loss=unsafe_show_loss,
    )
    with progress() as report:
        synthesizer.fit(
            read["data"], schema, labels=read["labels"], out=out, resume=resume, overwrite=force, progress=report
        )
    certificate = synthesizer.release_.certificate
    if as_json:
        say_json({"release": str(out), "certificate": certificate.to_dict()})
        return
    spent = certificate.spent["pld"] or 0.0
    say(f"{out}: ε = {spent:.4g} of {epsilon:g} spent (δ = {certificate.delta:.3g})")
    if not certificate.private:
        say(str(certificate).splitlines()[0])
    if synthesizer.private_ is not None:
        note(f"{private_path(out)}: the critic, not part of the release; keep it to yourself")
    if model == AUTO and clusters == 1:
        note(f"auto chose {synthesizer.release_.model.name} (override with --model)")
    some = "-o synthetic.png" if list_drawable(synthesizer.release_.schema) else "-n 1000 -o synthetic.csv"
    note(f"next: sundog certificate {out}   or   sundog sample {out} {some}")


def _parse_settings(pairs: list[str]) -> dict[str, Any]:
    from sundog.errors import SundogError

    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise SundogError(f"--set {pair!r}: write it as name=value")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings
