"""An append-only log of directories: a Merkle tree as in Certificate Transparency (RFC 6962).

Every group's directory is a leaf. A client checks that its directory is in the log (inclusion) and that the log still
begins with what the client saw before (consistency). The survivors of a group sign the log head, so clients of one
group have compared it; anybody may compare the heads of several groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sundog.errors import TallyError

EMPTY_ROOT = hashlib.sha256(b"").digest()


@dataclass(frozen=True)
class LogHead:
    """The number of directories in a log, and the root of its tree."""

    size: int = 0
    root: bytes = EMPTY_ROOT


class DirectoryLog:
    """The log itself, as the tally keeps it.

    >>> log = DirectoryLog()
    >>> log.append(b"first")
    0
    >>> before = log.head
    >>> log.append(b"second")
    1
    >>> check_inclusion(b"second", 1, log.head, log.prove_inclusion(1, log.head.size))
    >>> check_consistency(before, log.head, log.prove_consistency(before.size, log.head.size))
    """

    def __init__(self, leaves: Sequence[bytes] = ()) -> None:
        self._hashes = [_hash_leaf(leaf) for leaf in leaves]

    def append(self, leaf: bytes) -> int:
        """Add a leaf, and return its index."""
        self._hashes.append(_hash_leaf(leaf))
        return len(self._hashes) - 1

    @property
    def head(self) -> LogHead:
        """The present size and root."""
        return LogHead(len(self._hashes), _hash_tree(self._hashes))

    def prove_inclusion(self, index: int, size: int) -> tuple[bytes, ...]:
        """Return the hashes that show that the log of a size has a leaf, from its sibling up."""
        return tuple(_find_path(index, self._hashes[:size]))

    def prove_consistency(self, before: int, after: int) -> tuple[bytes, ...]:
        """Return the hashes that show that the log of one size begins with the log of a smaller one."""
        if not 0 <= before <= after <= len(self._hashes):
            raise TallyError(f"the log has {after} entries, not {before}; the message was refused")
        return tuple(_find_proof(before, self._hashes[:after], whole=True)) if 0 < before < after else ()


def check_inclusion(leaf: bytes, index: int, head: LogHead, path: Sequence[bytes]) -> None:
    """Raise TallyError unless the path shows that a leaf is in the log."""
    if not 0 <= index < head.size:
        raise TallyError("the directory is not in the log; it was refused")
    node, last, root = index, head.size - 1, _hash_leaf(leaf)
    for sibling in path:
        if last == 0:
            raise TallyError("the directory is not in the log; it was refused")
        if node % 2 or node == last:
            root = _hash_children(sibling, root)
            while not node % 2 and node:
                node, last = node >> 1, last >> 1
        else:
            root = _hash_children(root, sibling)
        node, last = node >> 1, last >> 1
    if last != 0 or root != head.root:
        raise TallyError("the directory is not in the log; it was refused")


def check_consistency(before: LogHead, after: LogHead, proof: Sequence[bytes]) -> None:
    """Raise TallyError unless the proof shows that one log begins with the other."""
    if before.size in (0, after.size):
        consistent = not proof and (before.size == 0 or before.root == after.root)
    else:
        consistent = before.size < after.size and _extends(before, after, proof)
    if not consistent:
        raise TallyError("the log of directories does not contain the log that was seen before; it was refused")


def _extends(before: LogHead, after: LogHead, proof: Sequence[bytes]) -> bool:
    node, last = before.size - 1, after.size - 1
    while node % 2:
        node, last = node >> 1, last >> 1
    path = [before.root, *proof] if node == 0 else list(proof)
    if not path:
        return False
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node % 2 or node == last:
            old, new = _hash_children(sibling, old), _hash_children(sibling, new)
            while not node % 2 and node:
                node, last = node >> 1, last >> 1
        else:
            new = _hash_children(new, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and old == before.root and new == after.root


def _hash_leaf(leaf: bytes) -> bytes:
    return hashlib.sha256(b"\0" + leaf).digest()


def _hash_children(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def _split(count: int) -> int:
    """Return the largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1


def _hash_tree(hashes: Sequence[bytes]) -> bytes:
    """Return the root over hashes of leaves, level by level."""
    level = list(hashes) or [EMPTY_ROOT]
    while len(level) > 1:
        pairs = [_hash_children(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) & ~1 :]
    return level[0]


def _find_path(index: int, hashes: Sequence[bytes]) -> list[bytes]:
    if len(hashes) == 1:
        return []
    middle = _split(len(hashes))
    if index < middle:
        return [*_find_path(index, hashes[:middle]), _hash_tree(hashes[middle:])]
    return [*_find_path(index - middle, hashes[middle:]), _hash_tree(hashes[:middle])]


def _find_proof(size: int, hashes: Sequence[bytes], *, whole: bool) -> list[bytes]:
    if size == len(hashes):
        return [] if whole else [_hash_tree(hashes)]
    middle = _split(len(hashes))
    if size <= middle:
        return [*_find_proof(size, hashes[:middle], whole=whole), _hash_tree(hashes[middle:])]
    return [*_find_proof(size - middle, hashes[middle:], whole=False), _hash_tree(hashes[:middle])]
