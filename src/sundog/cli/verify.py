"""Check a release: the file is whole, its events add up to its claim, the noise was private, the signature holds.

Example: sundog verify adult.sundog --key hospital.pub
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import say, say_json


def run(
    release: Annotated[Path, typer.Argument(help="The .sundog file.")],
    key: Annotated[Path | None, typer.Option(help="The public key of whoever should have signed it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> int:
    """Verifies; exit code 1 if the answer is no."""
    from sundog.release.release import Release
    from sundog.release.signing import fingerprint, load_public_key

    loaded = Release.load(release)
    public_key = None if key is None else load_public_key(key)
    problems = loaded.verify(public_key)
    signer = None if loaded.signature is None else fingerprint(loaded.signature.public_key)
    if as_json:
        say_json({"ok": not problems, "problems": problems, "hash": loaded.hash, "signed_by": signer})
        return 1 if problems else 0
    for problem in problems:
        say(f"NO: {problem}")
    if not problems:
        certificate = loaded.certificate
        say(f"{release}: holds (ε = {certificate.epsilon:g}, δ = {certificate.delta:.3g}, protects {certificate.who})")
    say(f"  hash       {loaded.hash}")
    say(f"  signed by  {_signer(signer, checked=public_key is not None and not problems)}")
    for caveat in (line for line in loaded.certificate.assumed_public if line.startswith("NOT REVIEWED")):
        say(f"  but        {caveat}")
    return 1 if problems else 0


def _signer(signer: str | None, *, checked: bool) -> str:
    if signer is None:
        return "nobody"
    return signer + ("  (the given key)" if checked else "  (compare with the owner's, or give --key)")
