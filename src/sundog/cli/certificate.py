"""Show what a release promises and what was spent.

Example: sundog certificate adult.sundog
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import say, say_json


def run(
    release: Annotated[Path, typer.Argument(help="The .sundog file.")],
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Print the certificate."""
    from sundog.release.document import Document

    certificate = Document.load(release).certificate
    if as_json:
        say_json(certificate.to_dict())
    else:
        say(str(certificate))
