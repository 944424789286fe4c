"""Samples of a release, settings of a command line, and a digest of the code."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import sundog
from sundog.data.records import Records, concatenate


def draw_records(release: sundog.Release, count: int, seed: int) -> Records:
    """Draw records from a release."""
    return concatenate(list(release.batches(count, seed=seed)))


def parse_settings(words: Sequence[str]) -> dict[str, Any]:
    """Return the settings given as `NAME=VALUE`, parsed as by the command line of sundog.

    >>> parse_settings(["hidden=16", "shape=mlp", "condition=null"])
    {'hidden': 16, 'shape': 'mlp', 'condition': None}
    """
    return {name: yaml.safe_load(value) for name, _, value in (word.partition("=") for word in words)}


def digest_code() -> str:
    """Return a digest of the package, by which kept outcomes of other code are recognised."""
    digest = hashlib.sha256()
    for path in sorted(Path(sundog.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
