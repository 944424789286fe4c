"""Fast normals: AES and ChaCha20 as published, the distribution far into the tails, nothing twice."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats
from tests.privacy.chacha_reference import chacha20, reference_normals
from torch import Tensor

from sundog.privacy.noise import FAST, SECURE, NoiseSource
from sundog.privacy.normals import Keystream, to_normal_pair, to_normals

Floats = npt.NDArray[np.float32]
CHANCE = 1e-7


def draw_on_host(count: int) -> Floats:
    return NoiseSource().standard_normal_(torch.empty(count)).numpy()


def draw_on_device(count: int) -> Floats:
    key = torch.from_numpy(np.random.default_rng().integers(-(2**31), 2**31, 8).astype(np.int32))
    return reference_normals(key, torch.tensor(1), count).numpy()


SOURCES = pytest.mark.parametrize("draw", [draw_on_host, draw_on_device])


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


def to_word(value: int) -> Tensor:
    return torch.tensor([value - 2**32 if value >= 2**31 else value], dtype=torch.int32)


def test_the_far_tail_by_its_bits() -> None:
    """Nobody waits for nine standard deviations: give the transform the bits that lead there."""
    for uniform in (0.99, 0.5, 2**-9, 2**-20, 2**-31, 2**-40, 2**-55, 2**-63, 2**-64):
        whole = int(uniform * 2**64)
        value, zero = to_normal_pair(to_word(whole >> 32), to_word(whole & 0xFFFFFFFF), to_word(0))
        assert float(value) == pytest.approx(np.sqrt(-2 * np.log((whole + 0.5) * 2.0**-64)), rel=1e-5)
        assert float(zero) == 0
    assert float(to_normal_pair(to_word(0), to_word(0), to_word(0))[0]) > 9.4


def test_every_value_is_finite() -> None:
    extremes = [to_word(value) for value in (0, 1, 2**31 - 1, 2**31, 2**32 - 1)]
    for high in extremes:
        for low in extremes:
            for angle in extremes:
                assert all(bool(value.isfinite()) for value in to_normal_pair(high, low, angle))


def test_angles_and_radii_are_independent() -> None:
    values = to_normals(Keystream(os.urandom(32)).draw_words((3, 700_000))).double().numpy()
    angle = np.arctan2(values[1], values[0])
    radius = np.hypot(*values)
    assert stats.kstest(angle / (2 * np.pi) + 0.5, "uniform").pvalue > CHANCE
    assert stats.kstest(radius**2 / 2, "expon").pvalue > CHANCE
    table = np.histogram2d(angle, radius, bins=[8, np.quantile(radius, np.linspace(0, 1, 9))])[0]
    assert stats.chi2_contingency(table).pvalue > CHANCE


def test_no_value_comes_twice() -> None:
    """Neither from the same source, nor from two, nor in two threads, nor in a child process."""
    source = NoiseSource()
    found: list[Floats] = []

    def draw() -> None:
        found.append(source.standard_normal_(torch.empty(100_000)).numpy())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    draw()
    found.append(draw_on_host(100_000))
    child = "import sys, numpy, tests.privacy.test_normals as t; sys.stdout.buffer.write(t.draw_on_host(8).tobytes())"
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, check=True, cwd=Path(__file__).parents[2])
    found.append(np.frombuffer(done.stdout, dtype=np.float32))
    draw()
    pieces = [tuple(values[i : i + 4]) for values in found for i in range(0, len(values) - 3, 4)]
    assert len(set(pieces)) == len(pieces)


def test_a_child_process_has_a_key_of_its_own() -> None:
    source = NoiseSource()
    source.standard_normal_(torch.empty(4))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        source._rekey_after_fork()
        os.write(write, bytes([source._keystream is None]))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"\1"


def test_messages_do_not_share_keystream() -> None:
    stream = Keystream(bytes(32))
    first, second = stream.draw_words((8,)), stream.draw_words((8,))
    for number, words in enumerate((first, second)):
        cipher = Cipher(algorithms.AES(bytes(32)), modes.CTR(number.to_bytes(12, "big") + bytes(4))).encryptor()
        assert words.numpy().tobytes() == cipher.update(bytes(32))
    with pytest.raises(ValueError, match="more than one message holds"):
        stream.draw_words((2**20, 2**15))


def test_a_seed_repeats_and_its_streams_differ() -> None:
    def drawn(source: NoiseSource) -> list[float]:
        return source.standard_normal_(torch.empty(5)).tolist()

    assert drawn(NoiseSource.seeded(1)) == drawn(NoiseSource.seeded(1))
    assert drawn(NoiseSource.seeded(1)) != drawn(NoiseSource.seeded(2))
    one = NoiseSource.seeded(1)
    assert (
        drawn(one.derive_stream("gradient", 3))
        == drawn(one.derive_stream("gradient", 3))
        != drawn(one.derive_stream("gradient", 4))
    )
    assert not one.derive_stream("batch", 1).private
    private = NoiseSource()
    assert private.derive_stream("gradient", 3) is private


def test_chacha20_is_that_of_the_rfc() -> None:
    """RFC 8439, section 2.3.2."""
    key = torch.from_numpy(np.frombuffer(bytes(range(32)), dtype="<i4").copy())
    nonce = np.frombuffer(bytes.fromhex("000000090000004a00000000"), dtype="<i4")
    words = chacha20(key, torch.tensor([1, 7], dtype=torch.int32), tuple(torch.tensor(int(n)) for n in nonce))  # type: ignore[arg-type]
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
