"""The program `sundog`: its commands, exit codes and error messages.

Exit codes: 0 done; 1 the answer is no (`verify`, `sign`, `ledger`, `audit`); 2 bad input, reported in one line; 3 a
release adds up but was not checked against a known key (`verify`); 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import typer

from sundog.cli import (
    audit,
    certificate,
    compare,
    demo,
    evaluate,
    example,
    fit,
    key,
    ledger,
    models,
    plan,
    sample,
    schema,
    sign,
    tally,
    verify,
)
from sundog.cli.console import drop_output
from sundog.untrusted_text import to_one_line

INTERRUPTED = 130

app = typer.Typer(
    name="sundog",
    help="Share data about people without revealing them.",
    epilog="Begin with: sundog example (files to try it on) or sundog demo (all of it on real data).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for command in (
    schema,
    fit,
    sample,
    certificate,
    verify,
    evaluate,
    audit,
    compare,
    models,
    plan,
    ledger,
    key,
    sign,
    demo,
    example,
):
    summary = " ".join(str(command.__doc__).partition("\n\n")[0].split())
    app.command(name=command.__name__.rpartition(".")[2], help=command.__doc__, short_help=summary)(command.run)

app.add_typer(tally.app, name="tally", help=tally.__doc__, short_help=str(tally.__doc__).partition("\n")[0])


def _print_version(asked: bool) -> None:
    if asked:
        import sundog

        typer.echo(f"sundog {sundog.__version__}")
        raise typer.Exit


@app.callback()
def _accept_root_options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run one command, and exit with its code."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is loaded: waiting threads do not spin
    code = _run(arguments)
    if code == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # already exiting
    try:
        sys.stdout.flush()
    except OSError:  # the reader of our output is gone
        drop_output()
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    from sundog.errors import SundogError

    try:
        code: Any = app(arguments, standalone_mode=False)
        sys.stdout.flush()
    except SundogError as error:
        return _fail(*error.lines)
    except (typer.Abort, KeyboardInterrupt):
        return _report_interruption()
    except (BrokenPipeError, SystemExit):  # the reader of our output is gone; typer exits when it notices
        drop_output()
        return 0
    except MemoryError:
        return _fail("out of memory; use fewer records at a time")
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}")
    except typer.TyperException as error:
        return _report_usage(error)
    if code == INTERRUPTED:  # typer turns Ctrl-C into an exit code without a message
        return _report_interruption()
    return code if isinstance(code, int) else 0


def _fail(*messages: str, code: int = 2) -> int:
    for message in messages:
        print(f"sundog: {to_one_line(message)}", file=sys.stderr)  # noqa: T201
    return code


def _report_interruption() -> int:
    return _fail(
        "interrupted; no half-written file was left. A fit that left a .partial folder can be continued with --resume",
        code=INTERRUPTED,
    )


def _report_usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return 2
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".")
    if context is None:
        return _fail(message)
    see = " See" if message.endswith("?") else "; see"
    return _fail(f"{message}{see}: {context.command_path} --help")
