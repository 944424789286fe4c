"""Output of the commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import typer

from sundog.progress import Progress


def say(text: str) -> None:
    """Print a result on stdout; if the reader is gone (`| head -1`), continue without output."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        drop_output()


def say_json(value: Any) -> None:
    """Print a result as JSON: the only thing on stdout."""
    say(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def drop_output() -> None:
    """Redirect stdout to nowhere, or Python would fail at exit when it flushes it."""
    with contextlib.suppress(OSError, ValueError):  # stdout may have no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def note(text: str) -> None:
    """Print a note on stderr."""
    typer.echo(text, err=True)


@contextlib.contextmanager
def print_warnings_as_lines() -> Iterator[None]:
    """Show each warning as one line on stderr."""
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        warnings.simplefilter("always", UserWarning)
        yield


@contextlib.contextmanager
def show_progress() -> Iterator[Progress]:
    """Show a progress bar on a terminal, else one line per stage; each warning is one line."""
    with print_warnings_as_lines():
        if sys.stderr.isatty():
            with _show_bar() as report:
                yield report
        else:
            lines = _Lines()
            yield lines
            lines.finish()


_EVERY = 30.0  # seconds between two lines of one long stage


class _Lines:
    """Prints a line for each finished stage; bad input thus prints one line only.

    A long stage with details ("training: step 3 of 10") also prints them now and then.
    """

    def __init__(self) -> None:
        self.stage = ""
        self.started = self.said = time.perf_counter()

    def __call__(self, stage: str, done: float) -> None:  # noqa: ARG002
        name, colon, _ = stage.partition(": ")
        if name == self.stage:
            if colon and time.perf_counter() - self.said >= _EVERY:
                self.said = time.perf_counter()
                note(stage)
            return
        self.finish()
        self.stage, self.started = name, time.perf_counter()
        self.said = self.started
        if "\n" in stage:
            note(stage.rstrip())
            self.stage = ""

    def finish(self) -> None:
        """Print how long the last stage took."""
        if self.stage:
            note(f"{self.stage}: {time.perf_counter() - self.started:.1f} s")


@contextlib.contextmanager
def _show_bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=1.0)

        def report(stage: str, done: float) -> None:
            if "\n" in stage:
                bars.console.print(stage.rstrip(), highlight=False, markup=False)  # a column may be called [a]
            else:
                bars.update(task, description=stage, completed=done)

        yield report


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    note(f"warning: {' '.join(str(message).split())}")
