"""Shared by all benchmarks: options, rows of figures beside a peer's, figures in a file, and interleaved medians."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

Figures = dict[str, float]

DATA = Path(os.environ.get("SUNDOG_DATA", "../shared/data"))


@dataclass(frozen=True)
class Row:
    """One figure of ours beside one of a peer's, measured in the same run."""

    name: str
    value: float
    unit: str
    peer: str
    peer_value: float

    @property
    def ratio(self) -> float:
        """Our figure divided by the peer's."""
        return self.value / self.peer_value if self.peer_value else float("inf")


def parse_arguments(
    description: str, extend: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.Namespace:
    """Parse the options that every benchmark has, and those that `extend` adds."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="small enough for a smoke test")
    if extend is not None:
        extend(parser)
    return parser.parse_args()


def print_each(rows: Iterable[Row]) -> list[Row]:
    """Return the rows, and print each as soon as it is measured.

    >>> len(print_each([Row("a fit", 12.34, "s", "a peer", 2.0)]))
    a fit: 12.34 s
    1
    """
    found = []
    for row in rows:
        print(f"{row.name}: {row.value:.4g} {row.unit}", flush=True)
        found.append(row)
    return found


def publish(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Print the table, and write the JSON file if one was asked for."""
    print(f"{'name':<34} {'ours':>12} {'':<8} {'peer':<28} {'peer':>12} {'ratio':>9}")
    for row in rows:
        print(
            f"{row.name:<34} {row.value:>12.5g} {row.unit:<8} {row.peer:<28} {row.peer_value:>12.5g} {row.ratio:>9.3g}"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows], indent=1) + "\n")


class Kept:
    """Figures in a file, by what was measured, for what takes long."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.figures: dict[str, Figures] = {}
        self._lock = Lock()
        self._read()

    def get(self, key: str, measure: Callable[[], Figures]) -> Figures:
        """Return what is in the file; measure it first if it is not."""
        if key not in self.figures:
            figures = measure()
            with self._lock:
                self._read()  # another process may have added to it
                self.figures[key] = figures
                if self.path is not None:
                    self.path.write_text(json.dumps(self.figures, indent=1, ensure_ascii=False) + "\n")
        return self.figures[key]

    def _read(self) -> None:
        if self.path is not None and self.path.exists():
            self.figures |= json.loads(self.path.read_text())


def time_interleaved(
    contestants: Mapping[str, Callable[[], object]], *, repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the median seconds of each, measured in turn, so that other load on the machine affects all equally."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, contestant in contestants.items():
            start = clock()
            contestant()
            times[name].append(clock() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}
