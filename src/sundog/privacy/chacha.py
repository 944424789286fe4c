"""Normal variates drawn on the GPU that trains: ChaCha20 in one kernel.

The host can make a few hundred million normals a second, and a GPU uses them faster. So the block function of ChaCha20
(RFC 8439) runs on the GPU, one lane per block, followed by the Box-Muller transform. Sixteen words make
ten normals: five pairs of a radius of 64 bits and an angle of 32. The kernel is in `chacha_kernel.py`; the tests
compare it with a reference in tensor operations, and the reference with the RFC.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

PER_BLOCK = 10  # normals


class DeviceNormals:
    """A stream of normals on one GPU; its key is used for nothing else.

    Args:
        device: where the normals are drawn.
        secret: the key, 32 bytes.
    """

    def __init__(self, device: Any, secret: bytes) -> None:
        words = [int.from_bytes(secret[i : i + 4], "little", signed=True) for i in range(0, 32, 4)]
        self.key = torch.tensor(words, dtype=torch.int32, device=device)
        self.message = torch.zeros(1, dtype=torch.int64, device=device)  # the nonce: no two fills have the same

    def fill(self, out: Tensor) -> Tensor:
        """Fill a flat float32 tensor; in a graph, with new values in every replay."""
        from sundog.privacy.chacha_kernel import launch

        self.message += 1
        launch(self.key, self.message, out, blocks=-(-len(out) // PER_BLOCK))
        return out
