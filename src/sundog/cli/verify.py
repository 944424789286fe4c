"""Check a release: the file is whole, its events add up to its claim, the noise was private, the signature holds.

Exit codes: 0 it holds; 1 it does not; 3 it adds up, but was not checked against a known key (it is not
signed, or no --key was given to compare the signature with).

Example: sundog verify adult.sundog --key hospital.pub
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sundog.cli.console import say, say_json

if TYPE_CHECKING:
    from sundog.release.document import Document
    from sundog.release.verdict import Verdict


def run(
    release: Annotated[Path, typer.Argument(help="The .sundog file.")],
    key: Annotated[Path | None, typer.Option(help="The public key of the expected signer.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that paid for it: check that it still has the charges.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> int:
    """Print the result and return the exit code."""
    from sundog.release.document import Document
    from sundog.release.signing import load_public_key

    public_key = None if key is None else load_public_key(key)
    document = Document.load(release)
    verdict = document.verify(public_key)
    if ledger is not None:
        from sundog.privacy.ledger import Ledger
        from sundog.release.ledger_heads import compare_with_ledger

        verdict.problems.extend(compare_with_ledger(document.certificate, Ledger.open(ledger)))
    if as_json:
        say_json(verdict.to_dict())
    else:
        _print_verdict(release, document, verdict)
    return verdict.exit_code


def _print_verdict(release: Path, document: Document, verdict: Verdict) -> None:
    for problem in verdict.problems:
        say(f"{release}: NO: {problem}")
    if not verdict.problems:
        certificate = document.certificate
        promise = f"(ε = {certificate.epsilon:g}, δ = {certificate.delta:.3g}, protects {certificate.who})"
        say(f"{release}: {_ANSWERS[verdict.status]} {promise}")
    say(f"  hash       {verdict.hash}")
    say(f"  signed by  {_describe_signer(verdict)}")
    for warning in verdict.warnings:
        say(f"  but        {warning}")


_ANSWERS = {
    "holds": "holds",
    "unsigned": "adds up; UNSIGNED: nobody vouches for it",
    "signed by an unknown key": "adds up; signed by A KEY THAT WAS NOT COMPARED: give --key",
}


def _describe_signer(verdict: Verdict) -> str:
    if verdict.signed_by is None:
        return "nobody"
    if verdict.status == "holds":
        return f"{verdict.signed_by}  (the given key)"
    return f"{verdict.signed_by}  (compare with the owner's, or give --key)"
