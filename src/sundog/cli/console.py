"""What the commands say, and where: results on stdout, everything else on stderr."""

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
    """A result, on stdout. Where nobody reads it any more (`| head -1`) the command goes on to its exit code."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        drop_output()


def say_json(value: Any) -> None:
    """A result for machines: the only thing on stdout."""
    say(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def drop_output() -> None:
    """Leads stdout nowhere from now on, or Python would try to write what is left, and complain, when it ends."""
    with contextlib.suppress(OSError, ValueError):  # what has no file has nothing to complain about
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def note(text: str) -> None:
    """Something worth knowing that is not a result, on stderr."""
    typer.echo(text, err=True)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[None]:
    """Warnings are one line each, on stderr."""
    with warnings.catch_warnings():
        warnings.showwarning = _one_line
        warnings.simplefilter("always", UserWarning)
        yield


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on a terminal, one plain line a stage otherwise; warnings become one line each."""
    with one_line_warnings():
        if sys.stderr.isatty():
            with _bar() as report:
                yield report
        else:
            lines = _Lines()
            yield lines
            lines.finish()


_EVERY = 30.0  # seconds between two lines of one long stage


class _Lines:
    """A line a stage, once it is done: bad input then gets its one line and no other.

    A stage that tells more than its name ("training: step 3 of 10") says so now and then, if it takes long.
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
            note(stage)
            self.stage = ""

    def finish(self) -> None:
        """Says that the last stage is done."""
        if self.stage:
            note(f"{self.stage}: {time.perf_counter() - self.started:.1f} s")


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=1.0)

        def report(stage: str, done: float) -> None:
            if "\n" in stage:
                bars.console.print(stage, highlight=False, markup=False)  # a column may be called [a]
            else:
                bars.update(task, description=stage, completed=done)

        yield report


def _one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    note(f"warning: {' '.join(str(message).split())}")
