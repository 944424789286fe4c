"""The log of directories agrees with a plain Merkle tree, and no proof shows what is not so."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest

from sundog.errors import TallyError
from sundog.tally.protocol.directory_log import DirectoryLog, LogHead, check_consistency, check_inclusion

LEAVES = [bytes([number]) * 3 for number in range(17)]


def hash_plainly(leaves: Sequence[bytes]) -> bytes:
    """Return the root as RFC 6962 defines it."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    middle = max(2**power for power in range(10) if 2**power < len(leaves))
    return hashlib.sha256(b"\1" + hash_plainly(leaves[:middle]) + hash_plainly(leaves[middle:])).digest()


def test_the_root_of_seven_known_leaves() -> None:
    """The test vectors of Certificate Transparency."""
    leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    log = DirectoryLog([bytes.fromhex(leaf) for leaf in leaves])
    assert log.head.root.hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


@pytest.mark.parametrize("size", range(1, len(LEAVES) + 1))
def test_every_leaf_is_in_the_log_and_no_other_is(size: int) -> None:
    log = DirectoryLog(LEAVES)
    head = LogHead(size, hash_plainly(LEAVES[:size]))
    assert DirectoryLog(LEAVES[:size]).head == head
    for index in range(size):
        path = log.prove_inclusion(index, size)
        check_inclusion(LEAVES[index], index, head, path)
        wrong = [
            (b"other", index, path),
            (LEAVES[index], index + 1, path),
            (LEAVES[index], index, (*path, bytes(32))),
            (LEAVES[index], index, path[1:] or (bytes(32),)),
        ]
        for leaf, place, proof in wrong:
            with pytest.raises(TallyError, match="not in the log"):
                check_inclusion(leaf, place, head, proof)


@pytest.mark.parametrize("before", range(len(LEAVES) + 1))
def test_a_log_begins_with_each_of_its_earlier_states_and_no_other(before: int) -> None:
    log = DirectoryLog(LEAVES)
    old = DirectoryLog(LEAVES[:before]).head
    forked = DirectoryLog([*LEAVES[: before - 1], b"other"]).head
    for after in range(before, len(LEAVES) + 1):
        new, proof = DirectoryLog(LEAVES[:after]).head, log.prove_consistency(before, after)
        check_consistency(old, new, proof)
        if before:
            with pytest.raises(TallyError, match="seen before"):
                check_consistency(forked, new, proof)
            with pytest.raises(TallyError, match="seen before"):
                check_consistency(old, new, (*proof, bytes(32)))
        if after > before > 0:
            with pytest.raises(TallyError, match="seen before"):
                check_consistency(new, old, proof)  # a log that shrinks
            with pytest.raises(TallyError, match="seen before"):
                check_consistency(old, LogHead(after, bytes(32)), proof)


def test_a_proof_for_an_impossible_size_is_refused() -> None:
    with pytest.raises(TallyError, match="the log has 3 entries, not 4"):
        DirectoryLog(LEAVES[:3]).prove_consistency(4, 3)
