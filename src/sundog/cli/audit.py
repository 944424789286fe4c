"""Attack a release, or any synthetic data, and repeat the fit of a release; say what was found.

All figures are as private as the real data; only those measured with --publish may be shared. Exit codes: 0 no
violation was found; 1 the promise of the certificate is broken; 2 bad input, or non-members that differ from the
members so that nothing can be judged.

Example: sundog audit adult.sundog --members adult.csv.gz --nonmembers adult_holdout.csv.gz -o audit.html
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sundog.cli.console import note, say, say_json, show_progress
from sundog.cli.evaluate import note_published, refuse_page, write_page
from sundog.cli.fit import Settings, parse_settings
from sundog.cli.streams import Format, resolve_sources

if TYPE_CHECKING:
    from sundog.auditing.audit_result import Audit

_AUDIT_HELP = "membership, replay, canaries, game or all; can be repeated. By default all that apply and are quick."

_SEED_HELP = "The same seed gives the same figures, except for canaries, whose noise is fresh."


def run(
    synthetic: Annotated[str, typer.Argument(help="A .sundog file, or synthetic records of any tool.")],
    members: Annotated[str, typer.Option(help="Records that it was fitted on.")],
    nonmembers: Annotated[str, typer.Option(help="Records of the same population that it was not fitted on.")],
    attack: Annotated[str, typer.Option(help="The name of one attack on membership, or all.")] = "all",
    audit_: Annotated[list[str] | None, typer.Option("--audit", help=_AUDIT_HELP)] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda: where attacks that train networks do so.")] = "cpu",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The report to write: one .html file.")] = None,
    reference: Annotated[str | None, typer.Option(help="Further records, for attackers who hold some.")] = None,
    private: Annotated[Path | None, typer.Option(help="The curator's file of the fit (OUT.sundog.private).")] = None,
    schema: Annotated[Path | None, typer.Option(help="The schema of data that is not a release.")] = None,
    format_: Format = None,
    labels: Annotated[str | None, typer.Option(help="Class labels of the members, in a file of their own.")] = None,
    nonmember_labels: Annotated[str | None, typer.Option(help="Class labels of the non-members.")] = None,
    set_: Settings = None,
    n: Annotated[int | None, typer.Option("-n", min=1, help="How many records to draw from a release.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="The most members and non-members to use.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use 5,000 members and few repeated fits only.")] = False,
    seed: Annotated[int, typer.Option(min=0, help=_SEED_HELP)] = 0,
    publish: Annotated[float | None, typer.Option(help="The ε to spend on figures that may be published.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of the real data to charge.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> int:
    """Audit, print the findings, and return the exit code."""
    from sundog.auditing.auditor import audit
    from sundog.data.schema import Schema

    given = {"synthetic": synthetic, "members": members, "nonmembers": nonmembers, "reference": reference}
    given |= {"labels": labels, "nonmember_labels": nonmember_labels}
    refuse_page(out, {**given, "private file": private, "schema": schema, "ledger": ledger})
    with show_progress() as report_progress:
        found = audit(
            **resolve_sources(format_, **given),
            private=private,
            schema=None if schema is None else Schema.load(schema),
            attack=attack,
            audits=audit_ or [],
            device=device,
            settings=parse_settings(set_ or []),
            n=n,
            rows=rows,
            quick=quick,
            seed=seed,
            publish=publish,
            ledger=ledger,
            progress=report_progress,
        )
        note_published(found.published, f"ε = {publish or 0:g} of {ledger}")
        write_page(found, out, report_progress)
    return _show(found, out, as_json)


def _show(found: Audit, out: Path | None, as_json: bool) -> int:
    """Print the figures, as JSON or as text, both of which say that they are private; return the exit code."""
    if as_json:
        say_json(found.to_dict())
    else:
        say(found.to_text())
        if out is not None:
            note(f"{out}: the whole report")
    return 1 if found.is_violated else 2 if found.is_unusable else 0
