"""Shamir's sharing agrees with `shamirs`, and fewer shares than the threshold fit every secret."""

from __future__ import annotations

import numpy as np
import pytest
import shamirs
from hypothesis import given, settings
from hypothesis import strategies as st

from sundog.errors import TallyError
from sundog.tally.protocol.shamir import (
    PRIME,
    Elements,
    expand_elements,
    pack_elements,
    reconstruct_secrets,
    share_secrets,
    unpack_elements,
)


def share(secrets: list[int], threshold: int, members: int) -> Elements:
    coefficients = expand_elements(bytes(32), (threshold - 1) * len(secrets)).reshape(threshold - 1, len(secrets))
    return share_secrets(np.array(secrets, dtype=np.uint64), coefficients, members)


@settings(max_examples=30)
@given(st.lists(st.integers(0, PRIME - 1), min_size=1, max_size=6), st.data())
def test_shamirs_reconstructs_what_we_share_and_the_reverse(secrets: list[int], data: st.DataObject) -> None:
    members = data.draw(st.integers(2, 12))
    threshold = data.draw(st.integers(1, members))
    chosen = data.draw(st.permutations(range(1, members + 1)))[:threshold]
    ours = share(secrets, threshold, members)
    for column, secret in enumerate(secrets):
        points = [shamirs.share(x, int(ours[x - 1, column]), PRIME) for x in chosen]
        assert shamirs.interpolate(points, threshold=threshold) == secret
        theirs = shamirs.shares(secret, members, modulus=PRIME, threshold=threshold)
        values = np.array([[theirs[x - 1].value] for x in chosen], dtype=np.uint64)
        assert reconstruct_secrets(np.array(chosen), values).tolist() == [secret]


def test_extreme_elements_do_not_overflow() -> None:
    """The largest group with the largest coefficients, against integers of Python."""
    members, threshold, largest = 1024, 615, PRIME - 1
    coefficients = np.full((threshold - 1, 1), largest, dtype=np.uint64)
    shares = share_secrets(np.array([largest], dtype=np.uint64), coefficients, members)
    for x in (1, 2, 1023, 1024):
        assert int(shares[x - 1, 0]) == sum(largest * pow(x, power, PRIME) for power in range(threshold)) % PRIME
    last = np.arange(members - threshold + 1, members + 1)
    assert reconstruct_secrets(last, shares[last - 1]).tolist() == [largest]


def test_one_share_fewer_than_the_threshold_fits_every_secret() -> None:
    """For any other secret there is one value of the missing share with which it would come out."""
    shares = share([1234], threshold=5, members=7)[:, 0]
    known, missing = np.array([1, 2, 4, 7]), 5
    for other in (0, 1, 1234, PRIME - 1):
        x = np.array([0, *known])
        values = np.array([[other], *[[shares[k - 1]] for k in known]], dtype=np.uint64)
        moved = (x - missing) % PRIME  # the polynomial at `missing` is that of the moved one at zero
        fake = reconstruct_secrets(moved, values)
        together = np.concatenate([values[1:], fake[None]])
        assert reconstruct_secrets(np.array([*known, missing]), together).tolist() == [other]


def test_members_must_differ() -> None:
    for members in ([1, 1], [0, 1]):
        with pytest.raises(ValueError, match="must differ"):
            reconstruct_secrets(np.array(members), np.ones((2, 1), dtype=np.uint64))


def test_elements_are_uniform_and_below_the_prime() -> None:
    elements = expand_elements(bytes(32), 200_000)
    assert elements.max() < PRIME
    counts = np.bincount((elements >> np.uint64(27)).astype(np.int64), minlength=16)
    expected = elements.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 60  # χ² of 15 degrees; the key is fixed


def test_a_word_outside_the_field_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([PRIME, 2**31 + 5, 2**32 - 1, *range(66)], dtype=np.uint32)
    monkeypatch.setattr("sundog.tally.protocol.mask_stream.MaskStream.expand", lambda self, key: words)
    assert expand_elements(bytes(32), 3).tolist() == [5, 0, 1]
    with pytest.raises(RuntimeError, match="broken"):
        expand_elements(bytes(32), 68)


def test_elements_become_bytes_and_back() -> None:
    elements = expand_elements(bytes(32), 6)
    assert (unpack_elements(pack_elements(elements)) == elements).all()
    with pytest.raises(TallyError, match="not in the field"):
        unpack_elements(PRIME.to_bytes(4, "little"))
