"""Run every step on real data, in less than a minute: census records and handwritten digits become releases.

Example: sundog demo
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import say


def run(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write to.")] = Path("sundog-demo"),
    epsilon: Annotated[float, typer.Option(help="The ε to spend on the census.")] = 1.0,
) -> None:
    """Run the demo."""
    from sundog.demo.walkthrough import run_walkthrough
    from sundog.files import refuse_stdout

    refuse_stdout(out, "folder")
    run_walkthrough(out, epsilon=epsilon, say=say)
