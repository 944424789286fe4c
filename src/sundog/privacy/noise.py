"""Noise sources.

Privacy noise is drawn from ChaCha20 with a key from the operating system, new in each process: a forked child that
inherited the stream would repeat its parent's noise, and two answers with the same noise have none in their
difference. For the same reason a source is never copied or pickled. Gradients need millions of normals a second: those
come from an AES-256 keystream (`normals.py`) or, if the user asks for it, from the generator of the device.

The samplers of integer noise compare exponential variates instead of uniforms with probabilities, so that an event of
probability exp(−40) happens as often as it should: `Exp(1) > x` is a coin of probability exp(−x) far into the tail.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from sundog.privacy.chacha import DeviceNormals
    from sundog.privacy.draws import Draw, HiddenDraw
    from sundog.privacy.events import Charge
    from sundog.privacy.normals import Keystream
    from sundog.privacy.skellam import SkellamTable

R = TypeVar("R")
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SECURE: Final = "ChaCha20 and AES-256 keyed by the operating system"
FAST: Final = "ChaCha20 keyed by the operating system; on gradients the device's own generator, not cryptographic"
SEEDED: Final = "a fixed seed, for tests: NOT PRIVATE"

_TWISTER = slice(24, 24 + 624 * 8)  # the 624 words of a Mersenne Twister, each in eight bytes of torch's state


class NoiseSource:
    """A stream of noise: `NoiseSource()` is private; `NoiseSource.seeded` is for tests and not private.

    >>> source = NoiseSource()
    >>> source.private, source.description
    (True, 'ChaCha20 and AES-256 keyed by the operating system')
    >>> NoiseSource.seeded(1).private
    False

    Args:
        fast_gradients: let the device that trains draw the noise of gradients by itself. Its generator (Philox on a
            GPU) has no known weakness in its distribution, but is not cryptographic; certificates say so.
    """

    private: bool
    description: str

    def __init__(self, *, fast_gradients: bool = False) -> None:
        self.private = True
        self.fast_gradients = fast_gradients
        self.description = FAST if fast_gradients else SECURE
        self._seed: int | None = None
        self._rekey()

    @classmethod
    def seeded(cls, seed: int) -> NoiseSource:
        """Return a source of repeatable noise, for tests: ledgers and certificates made with it read NOT PRIVATE."""
        source = cls()
        source.private = False
        source.description = SEEDED
        source._seed = seed
        source._rekey()
        return source

    def _rekey(self) -> None:
        from randomgen import ChaCha

        self._process = os.getpid()
        key = secrets.randbits(256) if self._seed is None else self._seed
        self._generator = np.random.Generator(ChaCha(key=key, rounds=20))
        self._keystream: Keystream | None = None
        self._threads = threading.Lock()
        self._devices: dict[str, Generator] = {}
        self._on_device: dict[str, DeviceNormals] = {}

    def _rekey_after_fork(self) -> None:
        if os.getpid() != self._process:
            self._rekey()

    @property
    def _rng(self) -> np.random.Generator:
        self._rekey_after_fork()
        return self._generator

    def derive_stream(self, *names: str | int) -> NoiseSource:
        """Return the source for one purpose: this one, or a separate seeded one for each purpose if this is seeded.

        So a test can compare a resumed training with one that was not interrupted.
        """
        if self._seed is None:
            return self
        digest = hashlib.sha256(repr((self._seed, *names)).encode()).digest()
        return NoiseSource.seeded(int.from_bytes(digest[:16], "little"))

    # --- what an audit sees: in production these do nothing but call the function ---

    def release(self, draw: Draw, compute: Callable[[], R]) -> R:  # noqa: ARG002
        """Return `compute()`: what a mechanism releases. All noise is added, and all choices are made, in here."""
        return compute()

    def hide(self, draw: HiddenDraw, compute: Callable[[], R]) -> R:  # noqa: ARG002
        """Return `compute()`: secret random numbers, each of which belongs to one record."""
        return compute()

    def note_charges(self, charges: Iterable[Charge], *, paid: bool) -> None:
        """Take note that measurements are charged next; `paid` if the ledger recorded it just now."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("a noise source cannot be copied or pickled: two copies would draw the same noise")

    def gaussian(self, size: int | tuple[int, ...]) -> Floats:
        """Return standard normal variates: floats, to be rounded to a lattice before release, as the mechanisms do."""
        return self._rng.standard_normal(size)

    def standard_normal_(self, out: Tensor) -> Tensor:
        """Fill a flat float32 tensor with standard normal variates, on its device.

        On a GPU: by ChaCha20 there, or by the device's own generator if `fast_gradients` was asked for.
        """
        if self.fast_gradients:
            return out.normal_(generator=self._get_device_generator(out.device))
        if out.device.type == "cpu":
            self._fill_on_host(out)
            return out
        return self._get_device_normals(out.device).fill(out)

    def _fill_on_host(self, out: Tensor) -> None:
        from sundog.privacy.normals import Keystream, to_normals

        self._rekey_after_fork()
        with self._threads:  # two threads must not get the same words
            if self._keystream is None:
                self._keystream = Keystream(self._draw_secret())
            words = self._keystream.draw_words((3, -(-len(out) // 2)))
        out.copy_(to_normals(words).view(-1)[: len(out)])

    def _draw_secret(self) -> bytes:
        return secrets.token_bytes(32) if self._seed is None else hashlib.sha256(repr(self._seed).encode()).digest()

    def _get_device_normals(self, device: Any) -> DeviceNormals:
        from sundog.privacy.chacha import DeviceNormals

        self._rekey_after_fork()
        with self._threads:
            if str(device) not in self._on_device:
                self._on_device[str(device)] = DeviceNormals(device, self._draw_secret())
            return self._on_device[str(device)]

    def _get_device_generator(self, device: Any) -> Generator:
        """Return the device's generator for noise on gradients, seeded by the operating system."""
        import torch

        self._rekey_after_fork()
        if str(device) not in self._devices:
            self._devices[str(device)] = torch.Generator(device)
            self.seed_(self._devices[str(device)])
        return self._devices[str(device)]

    def seed_(self, generator: Generator) -> None:
        """Put a generator of torch, which is not cryptographic, into a secret state.

        On a GPU it takes a seed of 64 bits. On the host it takes 32, few enough to try all: its whole state is drawn.
        """
        seed = self.draw_seed()
        generator.manual_seed(seed)
        if generator.device.type == "cpu":
            state = generator.get_state()
            words = state.numpy()[_TWISTER].view(np.uint64)
            if words[0] != seed % 2**32:
                raise RuntimeError(
                    "this version of torch keeps the state of its generator elsewhere; install the one sundog requires"
                )
            words[:] = self._rng.integers(2**32, size=len(words), dtype=np.uint64)
            generator.set_state(state)

    def draw_seed(self) -> int:
        """Return a secret seed for a generator that need not be cryptographic."""
        return int(self._rng.integers(2**62))

    def uniform(self, size: int | tuple[int, ...]) -> Floats:
        """Return uniform variates in [0, 1)."""
        return self._rng.random(size)

    def permutation(self, n: int) -> Integers:
        """Return a uniformly random permutation of 0 … n − 1."""
        return self._rng.permutation(n)

    def binomial(self, n: int, probability: float) -> int:
        """Return the number of heads in n independent coin flips."""
        return int(self._rng.binomial(n, probability))

    def subset(self, n: int, size: int) -> Integers:
        """Return a uniformly random set of `size` of the numbers below n, in no particular order."""
        return self._rng.choice(n, size, replace=False, shuffle=False)

    def coin(self, log_probability: Any) -> npt.NDArray[np.bool_]:
        """Return a coin flip for each entry, True with probability exp(entry)."""
        return np.asarray(self._rng.standard_exponential(np.shape(log_probability)) > -np.asarray(log_probability))

    def discrete_laplace(self, *, epsilon: float, size: int | tuple[int, ...]) -> Integers:
        """Return integers with P(k) ∝ exp(−ε|k|)."""
        shape = (size,) if isinstance(size, int) else size
        return _sample_by_rejection(int(np.prod(shape)), lambda n: self._propose_laplace(epsilon, n)).reshape(shape)

    def discrete_gaussian(self, *, sigma: float, size: int | tuple[int, ...]) -> Integers:
        """Return integers with P(k) ∝ exp(−k²/2σ²) (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
        shape = (size,) if isinstance(size, int) else size
        return _sample_by_rejection(int(np.prod(shape)), lambda n: self._propose_gaussian(sigma, n)).reshape(shape)

    def skellam(self, table: SkellamTable, size: int | tuple[int, ...]) -> Integers:
        """Return Skellam noise of the table's variance."""
        shape = (size,) if isinstance(size, int) else size
        return table.draw(self._draw_words, int(np.prod(shape))).reshape(shape)

    def _draw_words(self, size: int) -> npt.NDArray[np.uint64]:
        return self._rng.integers(2**64, size=size, dtype=np.uint64)

    def _propose_laplace(self, epsilon: float, n: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
        magnitude = np.floor(self._rng.standard_exponential(n) / epsilon).astype(np.int64)
        negative = self._rng.integers(0, 2, n, dtype=np.uint8).astype(bool)
        accepted = ~(negative & (magnitude == 0))  # zero has one sign only
        return np.where(negative, -magnitude, magnitude), accepted

    def _propose_gaussian(self, sigma: float, n: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
        scale = np.floor(sigma) + 1
        value, accepted = self._propose_laplace(1 / scale, n)
        log_ratio = -((np.abs(value) - sigma**2 / scale) ** 2) / (2 * sigma**2)
        return value, accepted & self.coin(log_ratio)


def _sample_by_rejection(n: int, propose: Any) -> Integers:
    """Draw n values by rejection sampling, a batch at a time."""
    out = np.empty(n, dtype=np.int64)
    filled = 0
    while filled < n:
        value, accepted = propose(int((n - filled) * 1.7) + 16)
        kept = value[accepted][: n - filled]
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out
