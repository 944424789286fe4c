"""A small release, in memory and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.release.material import fit

from sundog.release.release import Release


@pytest.fixture(scope="module")
def release() -> Release:
    return fit()


@pytest.fixture
def path(release: Release, tmp_path: Path) -> Path:
    release.save(tmp_path / "a.sundog")
    return tmp_path / "a.sundog"
