"""Verify a release and sign it, so that `verify --key` can check who made it.

Example: sundog sign adult.sundog --key hospital.key
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say


def run(
    release: Annotated[Path, typer.Argument(help="The .sundog file; it is replaced by its signed copy.")],
    key: Annotated[Path, typer.Option(help="The private key, as `sundog key` makes it.")],
) -> int:
    """Sign the file in place; return 1 if the release does not add up."""
    from sundog.release.document import Document
    from sundog.release.signing import compute_fingerprint, load_private_key

    private_key = load_private_key(key)
    document = Document.load(release)
    for problem in document.problems:
        say(f"{release}: NO: {problem}")
    if document.problems:
        say(f"{release}: not signed")
        return 1
    document.sign(private_key).save(release)
    say(f"{release}: signed by {compute_fingerprint(private_key.public_key())}")
    for warning in document.certificate.list_warnings():
        note(f"warning: {warning}")
    public = key.with_suffix(".pub")
    note(f"next: give {public} to the readers, who run: sundog verify {release} --key {public}")
    return 0
