"""Fits that are interrupted at chosen points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sundog.data.schema import Schema
from sundog.fit import stages
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.independent import Independent
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

# With declared bins: a range that noise made wider, as one in a thousand is, would have its bins refined.
NUMBER = {"type": "integer", "learn": True, "bins": 8}
SCHEMA = Schema.from_dict({"columns": {"n": NUMBER, "b": {"type": "boolean"}}})
DATA = {"n": np.arange(3000) % 10, "b": np.arange(3000) % 2 == 0}
STAGES = {
    "number of records": "records",
    "range of n": "schema",
    "marginal of n": "model",
    "marginal of b": "model",
}


def fit(out: Path, ledger: Path | None, *, resume: bool = False, **options: Any) -> Release:
    options = {"epsilon": 2.0, "schema": SCHEMA, "data": DATA, **options}
    schema, data = options.pop("schema"), options.pop("data")
    synthesizer = Synthesizer(**{"model": "independent", "ledger": ledger, **options})
    return synthesizer.fit(data, schema, out=out, resume=resume).release_


Patch = Callable[[pytest.MonkeyPatch], None]


def stop(owner: type | ModuleType, name: str, *, when: Callable[..., bool] = lambda *_: True, after: bool) -> Patch:
    """Makes Ctrl-C happen before or after a call of a method."""
    raw = owner.__dict__[name]
    original = raw.__func__ if isinstance(raw, classmethod) else raw

    def patched(*args: Any, **kwargs: Any) -> Any:
        if not when(*args):
            return original(*args, **kwargs)
        if after:
            original(*args, **kwargs)
        raise KeyboardInterrupt

    return lambda patch: patch.setattr(owner, name, classmethod(patched) if isinstance(raw, classmethod) else patched)


def is_saving(stage: str) -> Callable[..., bool]:
    return lambda checkpoint, name, *rest: name == stage


def is_paying(purpose: str) -> Callable[..., bool]:
    return lambda ledger, *charges: any(charge.purpose == purpose for charge in charges)


# Points at which nothing that was measured is lost.
KEPT: dict[str, Patch] = {
    "after the request was kept": stop(Checkpoint, "save_json", when=is_saving("fit"), after=True),
    "after the records were counted": stop(Checkpoint, "save_json", when=is_saving("records"), after=True),
    "after the schema was learned": stop(Checkpoint, "save_json", when=is_saving("schema"), after=True),
    "before the model is planned": stop(stages, "plan_model", after=False),
    "after the model is planned": stop(stages, "plan_model", after=True),
    "before the model is fitted": stop(Independent, "fit", after=False),
    "after the model was kept": stop(Checkpoint, "save_json", when=is_saving("model"), after=True),
    "before the release is saved": stop(Release, "save", after=False),
    "after the release was saved": stop(Release, "save", after=True),
    "before the checkpoint is removed": stop(Checkpoint, "remove", after=False),
}
# Points between a charge and the keeping of what it paid for.
LOSSY: dict[str, Patch] = {
    "after the count was charged": stop(Ledger, "spend", when=is_paying("number of records"), after=True),
    "before the count is kept": stop(Checkpoint, "save_json", when=is_saving("records"), after=False),
    "after the range was charged": stop(Ledger, "spend", when=is_paying("range of n"), after=True),
    "before the schema is kept": stop(Checkpoint, "save_json", when=is_saving("schema"), after=False),
    "after the marginals were charged": stop(Ledger, "spend", when=is_paying("marginal of n"), after=True),
    "before the marginals are kept": stop(Checkpoint, "save_tensors", when=is_saving("marginals"), after=False),
    "after the marginals were kept": stop(Checkpoint, "save_tensors", when=is_saving("marginals"), after=True),
    "before the model's arrays are kept": stop(Checkpoint, "save_tensors", when=is_saving("model"), after=False),
    "before the model is marked as done": stop(Checkpoint, "save_json", when=is_saving("model"), after=False),
}
HARMLESS = {**KEPT, **LOSSY}  # all of them: what was charged and lost, the same charge pays for again
shared_or_not = pytest.mark.parametrize("shared", [False, True], ids=["own ledger", "shared ledger"])


def interrupt_fit(out: Path, ledger: Path | None, patch: Patch, **options: Any) -> None:
    with pytest.MonkeyPatch.context() as context:
        patch(context)
        with pytest.raises(KeyboardInterrupt):
            fit(out, ledger, **options)


def prepare(tmp_path: Path, *, shared: bool) -> tuple[Path, Path | None]:
    if shared:
        Ledger.create(tmp_path / "all.ledger", epsilon=2.0, delta=1e-5)
    return tmp_path / "o.sundog", tmp_path / "all.ledger" if shared else None


def list_spent(out: Path, ledger: Path | None) -> list[str]:
    path = ledger or Checkpoint.locate_folder(out) / "ledger.jsonl"
    return [charge.purpose for charge in Ledger.open(path).charges] if path.exists() else []
