"""What the benchmarks of the GAN share: records of a release, settings of a command line, and which code was run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import sundog
from sundog.data.records import Records, concatenate


def records_of(release: sundog.Release, count: int, seed: int) -> Records:
    """Return so many generated records."""
    return concatenate(list(release.batches(count, seed=seed)))


def settings_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of `NAME=VALUE`, as the command line of sundog reads them.

    >>> settings_of(["hidden=16", "shape=mlp", "condition=null"])
    {'hidden': 16, 'shape': 'mlp', 'condition': None}
    """
    return {name: yaml.safe_load(value) for name, _, value in (word.partition("=") for word in words)}


def code() -> str:
    """Return a digest of the package: an outcome that was kept is that of this code, or of another."""
    digest = hashlib.sha256()
    for path in sorted(Path(sundog.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
