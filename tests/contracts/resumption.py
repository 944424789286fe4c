"""Fits that are interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release


def assert_resumes(fit: Callable[..., Release], folder: Path, *, stops: Callable[[int], bool], times: int = 2) -> None:
    """A fit that is interrupted before some of its charges and resumed ends as one that is not.

    Args:
        fit: fits to a file, with the same seed and noise each time.
        folder: where to put the files.
        stops: whether to interrupt before the charge with this number.
        times: how often it is interrupted.
    """
    whole, out = fit(folder / "whole.sundog"), folder / "o.sundog"
    spend, spends = Ledger.spend, 0

    def stop(ledger: Ledger, *charges: Charge) -> None:
        nonlocal spends
        spends += 1
        if stops(spends):
            raise KeyboardInterrupt
        spend(ledger, *charges)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "spend", stop)
        for number in range(times):
            with pytest.raises(KeyboardInterrupt):
                fit(out, resume=number > 0)
    assert_same_fit(fit(out, resume=True), whole)


def assert_same_fit(release: Release, whole: Release) -> None:
    """Both spent and learned the same."""
    assert release.certificate.charges == whole.certificate.charges
    assert release.verify() == whole.verify()
    tensors = whole.model.state().tensors
    for name, tensor in release.model.state().tensors.items():
        assert np.array_equal(tensor, tensors[name]), name
