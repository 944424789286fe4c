"""Fixtures for all tests."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # how long an example takes depends on the machine
settings.load_profile("patient")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread: small matrix products are faster with one, and the other core runs other tests."""
    import torch  # here, because most tests do not need it, and importing takes a second

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip fsync in tests that write thousands of files: it matters only in a power failure."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def remembered_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute each result of the accountant once for many fits."""
    from tests.remembered import remember_answers  # here, because it imports the accountant

    remember_answers(monkeypatch.setattr)


@pytest.fixture
def seeded_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit every twin with the same noise: even a correct one may be accused by chance."""
    from sundog.auditing.canaries import canary_audit, twin_audit
    from sundog.privacy.noise import NoiseSource

    seeded = functools.partial(canary_audit.audit_with_canaries, noise=NoiseSource.seeded(0))
    monkeypatch.setattr(twin_audit, "audit_with_canaries", seeded)


@pytest.fixture
def fast_reports(seeded_twins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate with small forests, audit with few fits, and both without plots, in tests of commands."""
    from sundog.auditing.canaries import canary_audit
    from sundog.auditing.games import game_audit
    from sundog.evaluation.prediction import learners  # here, because they import matplotlib and more
    from sundog.evaluation.report import svg
    from sundog.evaluation.report.markup import Html

    monkeypatch.setattr(canary_audit, "_IN_TABLES", 200)
    monkeypatch.setattr(game_audit, "_QUICK_RUNS", 20)
    monkeypatch.setattr(learners, "TREES", 8)
    monkeypatch.setattr(learners, "_ROUNDS", 10)
    monkeypatch.setattr(svg, "render_picture", lambda picture, prefix: Html("<svg></svg>"))
