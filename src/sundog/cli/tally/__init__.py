"""Sum what many people do without seeing any one of them.

Example: sundog tally plan --users 1000000 --cells 10000 --epsilon 1
"""

from __future__ import annotations

import typer

from sundog.cli.tally import plan

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

for command in (plan,):
    summary = " ".join(str(command.__doc__).partition("\n\n")[0].split())
    app.command(name=command.__name__.rpartition(".")[2], help=command.__doc__, short_help=summary)(command.run)


@app.callback()
def _accept_no_options() -> None:
    pass  # without a callback, typer would make the only command the group itself
