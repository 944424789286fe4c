"""How many of a group must survive, and how many may collude with the tally (docs/tally.md has the argument)."""

from __future__ import annotations


def compute_threshold(members: int) -> int:
    """Return ⌈0.6 n⌉: how many of a group must send shares, survive, sign and reveal.

    >>> [compute_threshold(n) for n in (5, 6, 300, 301)]
    [3, 4, 180, 181]
    """
    return -(-3 * members // 5)


def compute_most_corrupt(members: int) -> int:
    """Return how many of a group may collude: fewer than a fifth.

    >>> compute_most_corrupt(300), compute_most_corrupt(301)
    (59, 60)
    """
    return -(-members // 5) - 1
