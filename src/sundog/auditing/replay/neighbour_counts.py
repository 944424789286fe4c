"""How many neighbours of each kind were compared, in words."""

from __future__ import annotations

from collections.abc import Mapping


def list_counts(kinds: Mapping[str, int]) -> str:
    """Return the kinds that were compared, with their numbers.

    >>> list_counts({"extreme values": 2, "missing values": 0, "removals": 3})
    'extreme values 2, removals 3'
    """
    return ", ".join(f"{kind} {count:,}" for kind, count in kinds.items() if count)


def describe_counts(kinds: Mapping[str, int]) -> str:
    """Return what was compared, and what was not, in sentences.

    >>> describe_counts({"extreme values": 2, "missing values": 0, "copies": 0, "removals": 3})
    'Compared were: extreme values 2, removals 3. No neighbour was compared with missing values or copies.'
    """
    none = [kind for kind, count in kinds.items() if not count]
    said = f"Compared were: {list_counts(kinds)}."
    return f"{said} No neighbour was compared with {' or '.join(none)}." if none else said
