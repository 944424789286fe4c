"""What tests of several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # how long an example takes says more about the machine
settings.load_profile("patient")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small products are faster by one thread, and the other core has tests of its own."""
    import torch  # here: most tests do without, and it takes a second

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that write thousands of files: only a power cut would tell whether the disk was waited for."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def remembered_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accountant is asked once for what many fits ask."""
    from tests.remembered import remember_answers  # here: it loads the accountant

    remember_answers(monkeypatch.setattr)
