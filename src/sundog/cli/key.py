"""Make a pair of keys for signing releases: NAME.key is private, NAME.pub is public.

Example: sundog key hospital
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say


def run(name: Annotated[Path, typer.Argument(help="The name of both files, without ending.")]) -> None:
    """Generate an Ed25519 key pair."""
    from sundog.release.signing import generate_key

    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    fingerprint = generate_key(private, public)
    say(f"{private} (keep it secret) and {public}: {fingerprint}")
    note(f"next: sundog sign RELEASE.sundog --key {private}")
