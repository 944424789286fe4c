"""A checkpoint in memory: every noisy measurement that a fit made.

A fit keeps each measurement in its checkpoint before it goes on. All of it was measured with noise and paid for, and
the release is computed from it, so the attacker that sees the checkpoint is the strongest that the guarantee covers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sundog.privacy.checkpoint import Checkpoint, Tensors


class MemoryCheckpoint(Checkpoint):
    """Keeps what a fit measured, and writes nothing to disk.

    >>> import numpy as np
    >>> kept = MemoryCheckpoint()
    >>> kept.save_tensors("means", {"sums": np.zeros(3)})
    >>> kept.tensors["means"]["sums"].shape
    (3,)
    """

    def __init__(self) -> None:
        super().__init__(Path("memory"), "memory")
        self.tensors: dict[str, Tensors] = {}
        self.files: dict[str, bytes] = {}
        self.documents: dict[str, dict[str, Any]] = {}

    def save_tensors(self, name: str, tensors: Tensors) -> None:
        """Keep arrays."""
        self.tensors[name] = tensors

    def load_tensors(self, name: str) -> Tensors | None:
        """Return arrays that were kept, or None."""
        return self.tensors.get(name)

    def save_bytes(self, file: str, content: bytes) -> None:
        """Keep a file."""
        self.files[file] = content

    def load_bytes(self, file: str) -> bytes | None:
        """Return a file that was kept, or None."""
        return self.files.get(file)

    def save_json(self, name: str, result: dict[str, Any]) -> None:
        """Keep plain values."""
        self.documents[name] = result

    def load_json(self, name: str, *keys: str) -> dict[str, Any] | None:  # noqa: ARG002  nothing here can be damaged
        """Return plain values that were kept, or None."""
        return self.documents.get(name)
