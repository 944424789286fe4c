"""Fit a model to private data and write a release that anybody can sample.

Example: sundog fit adult.csv.gz --schema adult.schema.yaml --epsilon 1 -o adult.sundog

A mixture: sundog fit digits.npz --schema digits.schema.yaml --epsilon 4 --model rbm --clusters 10 -o digits.sundog
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sundog.cli.console import note, say, say_json, show_progress
from sundog.cli.streams import Format, resolve_sources

if TYPE_CHECKING:
    from sundog.fit.synthesizer import Synthesizer

_DATA_HELP = (
    "The private data: csv, JSON lines, parquet, Arrow, xlsx, npz, idx or transactions; a database URL; - for stdin."
)
_SEED_HELP = "For tests: repeatable noise. The release is then NOT PRIVATE."
_LOSS_HELP = "Show the training loss on private records. NOT PRIVATE: for your eyes only."

Data = Annotated[str, typer.Argument(help=_DATA_HELP)]
SchemaFile = Annotated[Path, typer.Option(help="The schema: what is publicly known about the data.")]
Epsilon = Annotated[float, typer.Option(help="The ε this release may spend.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="The release to write.")]
Delta = Annotated[float | None, typer.Option(help="The δ; by default 1/(10·n^1.1), at most 1e-5.")]
ModelName = Annotated[str, typer.Option(help="The model: auto, independent, marginals, rbm, vae or gan.")]
Clusters = Annotated[
    int, typer.Option(min=1, help="More than one: a mixture, with a model (any but gan) for each cluster of records.")
]
Public = Annotated[
    str | None, typer.Option(help="Public data of the same schema, from which a clustering or a GAN can start.")
]
Target = Annotated[
    str | None, typer.Option(help="The column that users will predict: its pairs with others count more.")
]
LedgerFile = Annotated[Path | None, typer.Option(help="A ledger file shared by all fits on this data.")]
Labels = Annotated[str | None, typer.Option(help="Class labels, when they are a file of their own.")]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Seed = Annotated[int | None, typer.Option(help="Fixes the initialisation, never privacy noise.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the model, as name=value; `sundog models MODEL` lists them."),
]
Resume = Annotated[bool, typer.Option(help="Resume an interrupted fit.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the release if it exists.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")]
NoiseSeed = Annotated[int | None, typer.Option(help=_SEED_HELP)]
ShowLoss = Annotated[bool, typer.Option("--unsafe-show-loss", help=_LOSS_HELP)]


def run(
    data: Data,
    schema: SchemaFile,
    epsilon: Epsilon,
    out: Out,
    delta: Delta = None,
    model: ModelName = "auto",
    clusters: Clusters = 1,
    public: Public = None,
    target: Target = None,
    ledger: LedgerFile = None,
    labels: Labels = None,
    format_: Format = None,
    device: Device = "cpu",
    seed: Seed = None,
    set_: Settings = None,
    resume: Resume = False,
    force: Force = False,
    as_json: AsJson = False,
    unsafe_noise_seed: NoiseSeed = None,
    unsafe_show_loss: ShowLoss = False,
) -> None:
    """Fit a model and save its release."""
    from sundog.data.schema import Schema
    from sundog.fit.preflight import refuse_fit_output
    from sundog.fit.synthesizer import Synthesizer
    from sundog.privacy.noise import NoiseSource

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
        settings=parse_settings(set_ or []),
        noise=None if unsafe_noise_seed is None else NoiseSource.seeded(unsafe_noise_seed),
        show_loss=unsafe_show_loss,
    )
    declared = Schema.load(schema) if target is None else Schema.load(schema).aim_at(target)
    with show_progress() as report:
        synthesizer.fit(
            read["data"], declared, labels=read["labels"], out=out, resume=resume, overwrite=force, progress=report
        )
    _print_result(synthesizer, out, as_json=as_json)


def _print_result(synthesizer: Synthesizer, out: Path, *, as_json: bool) -> None:
    """Print the certificate as JSON, or what was spent and what to do next."""
    from sundog.data.writing.contact_sheet import list_drawable
    from sundog.models.auto import REASONS
    from sundog.models.registry import AUTO
    from sundog.release.curator_file import get_curator_path

    release = synthesizer.release_
    if as_json:
        say_json({"release": str(out), "certificate": release.certificate.to_dict()})
        return
    spent = release.certificate.spent["pld"] or 0.0
    say(f"{out}: ε = {spent:.4g} of {synthesizer.epsilon:g} spent (δ = {release.certificate.delta:.3g})")
    if not release.certificate.private:
        say(str(release.certificate).splitlines()[0])
    if synthesizer.private_ is not None:
        note(f"{get_curator_path(out)}: the critic, not part of the release; keep it to yourself")
    if synthesizer.model == AUTO and synthesizer.clusters == 1:
        note(f"auto chose {release.model.name}: {REASONS[release.model.name]} (override with --model)")
    some = "-o synthetic.png" if list_drawable(release.schema) else "-n 1000 -o synthetic.csv"
    note(f"next: sundog certificate {out}   or   sundog sample {out} {some}")


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Return the settings of `--set`; values are JSON where they can be."""
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
