"""One run of a fit: the budget it spends from, and the checkpoint that keeps its results until the release is saved."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sundog.data.schema import Schema
from sundog.errors import LedgerError, SundogError
from sundog.files import FULL, find_os_error
from sundog.fit.request import Request
from sundog.privacy.budget import LARGEST_DELTA
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.ledger_heads import refuse_contradictions


@dataclass(frozen=True)
class Run:
    """The ledger and the checkpoint of one fit.

    Args:
        ledger: the budget of this fit.
        shared: the ledger that it shares with other fits, if there is one.
        checkpoint: keeps results on disk; None if the fit cannot be resumed.
    """

    ledger: Ledger
    shared: Ledger | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class RunOptions:
    """The ledger that a fit spends from, and the file it saves.

    Args:
        ledger: a ledger or its path, shared with other fits; None for a ledger of this fit alone.
        noise: where noise is drawn, for tests.
        out: the release to be written; None if it is not saved.
        resume: whether to continue from the checkpoint of an interrupted fit.
    """

    ledger: Ledger | str | Path | None = None
    noise: NoiseSource | None = None
    out: Path | None = None
    resume: bool = False


@contextlib.contextmanager
def open_run(request: Request, schema: Schema, options: RunOptions) -> Iterator[Run]:
    """Open the ledger and the checkpoint of a fit; the checkpoint stays if the fit fails after spending anything."""
    ledger, noise, out, resume = options.ledger, options.noise, options.out, options.resume
    if isinstance(ledger, Ledger):
        if noise is not None:
            raise SundogError("the noise of a fit is that of its ledger; give one or the other")
        # In memory: it ends with the process, and the fit cannot be resumed.
        yield Run(_begin_run(request, ledger), ledger)
        return
    if out is None:
        shared = None if ledger is None else _open_ledger(request, Path(ledger), noise)
        yield Run(_begin_run(request, shared or _open_ledger(request, None, noise)), shared)
        return
    asked = request.to_dict(schema, ledger)
    checkpoint = Checkpoint.resume(out, asked) if resume else Checkpoint.begin(out, asked)
    run = None
    try:
        run = _open_on_disk(request, ledger, noise, checkpoint, out=out, resume=resume)
        yield run
    except BaseException as error:
        if not resume and (run is None or not run.ledger.charges):
            checkpoint.remove()  # only then: what was spent must not be forgotten
        else:
            _explain_full_disk(error, checkpoint)
        raise
    else:
        checkpoint.remove()
    finally:
        checkpoint.release()


def _open_on_disk(
    request: Request,
    ledger: str | Path | None,
    noise: NoiseSource | None,
    checkpoint: Checkpoint,
    *,
    out: Path,
    resume: bool,
) -> Run:
    if ledger is not None:
        shared = _open_ledger(request, Path(ledger), noise, must_exist=resume)
        refuse_contradictions(shared, Path(ledger), {Path(ledger).parent, out.parent})
        return Run(_begin_run(request, shared, checkpoint.run), shared, checkpoint)
    path = checkpoint.ledger_path
    if resume and not path.exists():
        raise LedgerError(
            f"{checkpoint.folder}: has no ledger to resume with; delete the folder and fit again (what it spent, if "
            "anything, stays spent)"
        )
    own = _open_ledger(request, path, noise, must_exist=resume)
    return Run(_begin_run(request, own, checkpoint.run), None, checkpoint)


def _open_ledger(request: Request, path: Path | None, noise: NoiseSource | None, *, must_exist: bool = False) -> Ledger:
    """Return the ledger in a file, or a new one as large as this fit, in the file or in memory."""
    delta = LARGEST_DELTA if request.delta is None else request.delta
    if path is None:
        return Ledger(epsilon=request.epsilon, delta=delta, noise=noise)
    if must_exist or path.exists():
        return Ledger.open(path, noise=noise)
    return Ledger.create(path, epsilon=request.epsilon, delta=delta, noise=noise)


def _begin_run(request: Request, root: Ledger, name: str | None = None) -> Ledger:
    """Return the budget of this fit inside a ledger, with the ledger's δ if none was asked for."""
    delta = root.budget.delta if request.delta is None else request.delta
    return root.run(epsilon=request.epsilon, delta=delta, name=name)


def _explain_full_disk(error: BaseException, checkpoint: Checkpoint) -> None:
    """Raise an error that says how to resume, if the disk was full."""
    full = find_os_error(error)
    if full is None or full.errno not in FULL:
        return
    where = full.strerror if error is full else error
    raise SundogError(
        f"{where}; what was measured is kept in {checkpoint.folder}: free space, then run the same command with "
        "--resume"
    ) from None
