"""Fast normals: AES and ChaCha20 as published, the distribution far into the tails, nothing twice."""

from __future__ import annotations

import os
import threading

import numpy as np
import numpy.typing as npt
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from sundog.privacy import chacha
from sundog.privacy.noise import FAST, SECURE, NoiseSource
from sundog.privacy.normals import _PAIRS, BLOCK, NormalStream, _block

Floats = npt.NDArray[np.float32]
CHANCE = 1e-7


def of_the_host(count: int) -> Floats:
    values = np.empty(count, dtype=np.float32)
    NoiseSource().normals(values)
    return values


def of_a_device(count: int) -> Floats:
    key = torch.from_numpy(np.random.default_rng().integers(-(2**31), 2**31, 8).astype(np.int32))
    return chacha._normals(key, torch.tensor(1), -(-count // 10)).flatten()[:count].numpy()


SOURCES = pytest.mark.parametrize("draw", [of_the_host, of_a_device])


@SOURCES
def test_they_are_normal(draw: object) -> None:
    values = draw(1_000_000).astype(np.float64)  # type: ignore[operator]
    assert stats.kstest(values, "norm").pvalue > CHANCE
    for scale in (0.98, 1.02):  # the test would see a scale that is off by two percent
        assert stats.kstest(values * scale, "norm").pvalue < CHANCE


@SOURCES
def test_the_tails_are_as_heavy_as_they_should_be(draw: object) -> None:
    values = np.abs(draw(2_000_000))  # type: ignore[operator]
    for bound in (2.0, 3.0, 3.33, 4.0, 4.5, 5.0):
        expected = 2 * stats.norm.sf(bound)
        assert stats.binomtest(int((values > bound).sum()), len(values), expected).pvalue > CHANCE


def test_the_far_tail_by_its_bits() -> None:
    """Nobody waits for eight standard deviations: give the transform the bits that lead there."""

    class Bits:
        def __init__(self, *draws: int) -> None:
            self.draws = list(draws)

        def update_into(self, zeros: bytes, out: npt.NDArray[np.uint8]) -> None:
            out.view(np.uint32)[:] = self.draws.pop(0)
            assert len(zeros) == len(out)

    from sundog.privacy.normals import _radii

    radius = np.empty(4, dtype=np.float32)
    for uniform in (2**-9, 2**-20, 2**-31, 2**-40, 2**-55, 2**-63):
        whole = int(uniform * 2**64)
        bits = np.full(4, (whole >> 32) - 2**31, dtype=np.int64).astype(np.int32).view(np.uint32)
        _radii(Bits(whole & 0xFFFFFFFF), bits, radius)
        assert radius == pytest.approx(np.sqrt(-2 * np.log((whole + 0.5) * 2.0**-64)), rel=1e-6)
    assert float(radius[0]) > 9.2
    high, low = (torch.tensor([word], dtype=torch.int32) for word in (0, 1))
    assert float(chacha._pair(high, low, torch.zeros(1))[0]) > 9.2


def test_every_radius_is_finite() -> None:
    from sundog.privacy.normals import _radii

    class Zeros:
        def update_into(self, zeros: bytes, out: npt.NDArray[np.uint8]) -> None:
            out[:] = 0
            assert len(zeros) == len(out)

    extremes = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], dtype=np.int32).view(np.uint32)
    radius = np.empty(len(extremes), dtype=np.float32)
    _radii(Zeros(), extremes, radius)
    assert np.isfinite(radius).all()
    assert (radius >= 0).all()
    words = torch.tensor([-(2**31), -1, 0, 1, 2**31 - 1], dtype=torch.int32)
    pairs = [chacha._pair(high[None], low[None], words[:1]) for high in words for low in words]
    assert all(bool(value.isfinite()) for pair in pairs for value in pair)


def test_angles_and_radii_are_independent() -> None:
    values = np.stack([_block(os.urandom(32), 0).reshape(2, _PAIRS) for _ in range(20)], axis=1).reshape(2, -1)
    angle = np.arctan2(values[1], values[0])
    radius = np.hypot(*values)
    assert stats.kstest(angle / (2 * np.pi) + 0.5, "uniform").pvalue > CHANCE
    assert stats.kstest(radius.astype(np.float64) ** 2 / 2, "expon").pvalue > CHANCE
    table = np.histogram2d(angle, radius, bins=[8, np.quantile(radius, np.linspace(0, 1, 9))])[0]
    assert stats.chi2_contingency(table).pvalue > CHANCE


def test_no_value_comes_twice() -> None:
    """Neither from the same stream, nor from two sources, nor in two threads, nor in a child process."""
    source = NoiseSource()
    found: list[Floats] = []

    def draw() -> None:
        values = np.empty(100_000, dtype=np.float32)
        source.normals(values)
        found.append(values)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    draw()
    found.append(of_the_host(100_000))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        draw()
        os.write(write, found[-1][:8].tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    draw()
    found.append(np.frombuffer(os.read(read, 32), dtype=np.float32))
    pieces = [tuple(values[i : i + 4]) for values in found for i in range(0, len(values) - 3, 4)]
    assert len(set(pieces)) == len(pieces)


def test_blocks_do_not_share_keystream() -> None:
    """A block uses fewer of its 2³² counters than there are."""
    assert BLOCK * 4 * 2 < 16 * 2**32
    cipher = Cipher(algorithms.AES(bytes(32)), modes.CTR((1).to_bytes(12, "big") + bytes(4))).encryptor()
    words = np.frombuffer(cipher.update(bytes(8 * _PAIRS)), dtype=np.uint32).reshape(2, _PAIRS)
    angle = words[1].view(np.int32) * (np.pi * 2.0**-31)
    values = _block(bytes(32), 1).reshape(2, _PAIRS)
    clear = np.hypot(*values) > 0.1
    np.testing.assert_allclose(np.cos(np.arctan2(values[1], values[0]) - angle)[clear], 1.0, atol=1e-5)


def test_a_seed_repeats_and_its_streams_differ() -> None:
    def drawn(source: NoiseSource) -> list[float]:
        values = np.empty(5, dtype=np.float32)
        source.normals(values)
        return values.tolist()

    assert drawn(NoiseSource.seeded(1)) == drawn(NoiseSource.seeded(1))
    assert drawn(NoiseSource.seeded(1)) != drawn(NoiseSource.seeded(2))
    one = NoiseSource.seeded(1)
    assert drawn(one.stream("gradient", 3)) == drawn(one.stream("gradient", 3)) != drawn(one.stream("gradient", 4))
    assert not one.stream("batch", 1).private
    private = NoiseSource()
    assert private.stream("gradient", 3) is private


def test_a_stream_is_made_ahead_and_in_order() -> None:
    stream = NormalStream(bytes(32))
    for number in range(5):
        np.testing.assert_array_equal(stream.block(), _block(bytes(32), number))


def test_chacha20_is_that_of_the_rfc() -> None:
    """RFC 8439, section 2.3.2."""
    key = torch.from_numpy(np.frombuffer(bytes(range(32)), dtype="<i4").copy())
    nonce = np.frombuffer(bytes.fromhex("000000090000004a00000000"), dtype="<i4")
    words = chacha.chacha20(key, torch.tensor([1, 7], dtype=torch.int32), tuple(torch.tensor(int(n)) for n in nonce))  # type: ignore[arg-type]
    found = np.array([int(word[0]) for word in words], dtype=np.int64).astype(np.int32).astype("<i4").tobytes()
    expected = (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert found.hex() == expected


@pytest.mark.parametrize(("fast", "said"), [(False, SECURE), (True, FAST)])
def test_tensors_are_filled_and_the_source_says_how(fast: bool, said: str) -> None:
    source = NoiseSource(fast_gradients=fast)
    assert source.description == said
    assert source.private
    first, second = (source.standard_normal_(torch.empty(200_000)).double().numpy() for _ in range(2))
    for values in (first, second):
        assert stats.kstest(values, "norm").pvalue > CHANCE
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02
