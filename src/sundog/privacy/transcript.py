"""Transcripts of charges and draws, for audits: NOT PRIVATE.

A `RecordingSource` keeps every charge, every draw with its exact values, and what was released. A `ReplayingSource`
hands the values that one fit released to another, in place of its own: whatever the two fits still do differently, the
released values do not explain. Both are sources of test noise, and everything made with them reads NOT PRIVATE.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import BatchDraw, Draw, HiddenDraw, PairingDraw, Signature
from sundog.privacy.events import Charge
from sundog.privacy.noise import SEEDED, NoiseSource

if TYPE_CHECKING:
    from torch import Generator

R = TypeVar("R")
Stream = tuple[str | int, ...]  # the names by which a stream was derived
Integers = npt.NDArray[np.int64]

_MEMBER = 0.5  # the probability that an added record is in a batch, whatever the rate: an audit looks at those


class ReplayDivergenceError(Exception):
    """A replayed fit draws what the recorded one did not."""


@dataclass(frozen=True, eq=False)
class Noted:
    """Charges that a mechanism made; `paid` if a ledger recorded them."""

    charges: tuple[Charge, ...]
    paid: bool


@dataclass(frozen=True, eq=False)
class Released:
    """A draw, and what was released for it."""

    stream: Stream
    draw: Draw
    value: Any


@dataclass(frozen=True, eq=False)
class Hidden:
    """Secret random numbers of records."""

    draw: HiddenDraw
    value: Any


@dataclass
class Transcript:
    """What one fit charged and drew, in order.

    Args:
        look: is called with each event; what it returns is kept beside the event, such as the files on disk.
    """

    look: Callable[[], Any] = lambda: None
    events: list[tuple[Noted | Released, Any]] = field(default_factory=list)
    released: dict[Stream, list[Released]] = field(default_factory=lambda: defaultdict(list))
    hidden: dict[Stream, list[Hidden]] = field(default_factory=lambda: defaultdict(list))
    unseen: list[Stream] = field(default_factory=list)
    loss: Stream | None = None  # the stream that a private loss draws from just now

    def add(self, event: Noted | Released) -> None:
        """Append an event."""
        self.events.append((event, self.look()))
        if isinstance(event, Released):
            self.released[event.stream].append(event)


class RecordingSource(NoiseSource):
    """Repeatable test noise, NOT PRIVATE, that writes a transcript.

    >>> from sundog.privacy.ledger import Ledger
    >>> from sundog.privacy.mechanisms import noisy_count
    >>> transcript = Transcript()
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6, noise=RecordingSource(0, transcript))
    >>> released = noisy_count(100, epsilon=0.5, ledger=ledger, purpose="a count")
    >>> (noted, _), (draw, _) = transcript.events
    >>> noted.charges[0].purpose, int(draw.draw.exact[0]), int(draw.value[0]) == released, ledger.private
    ('a count', 100, True, False)

    Args:
        seed: of the noise.
        transcript: is written.
    """

    def __init__(self, seed: int, transcript: Transcript, *, _stream: Stream = ()) -> None:
        self._is_inside = False
        super().__init__()
        self.private, self.description = False, SEEDED
        self.transcript, self.stream = transcript, _stream
        self._seed = seed
        with self._allow():
            self._rekey()

    def derive_stream(self, *names: str | int) -> NoiseSource:
        """Return the source of one purpose, which writes the same transcript."""
        seed = NoiseSource.seeded(self._seed or 0).derive_stream(*names)._seed
        return self._derive(seed or 0, (*self.stream, *names))

    def _derive(self, seed: int, stream: Stream) -> RecordingSource:
        return RecordingSource(seed, self.transcript, _stream=stream)

    def release(self, draw: Draw, compute: Callable[[], R]) -> R:
        """Keep the draw and what is released for it."""
        self.transcript.loss = None
        kept = copy.deepcopy(draw)
        with self._allow():
            value = self._choose_release(draw, compute)
        self.transcript.add(Released(self.stream, kept, copy.deepcopy(value)))
        return value

    def hide(self, draw: HiddenDraw, compute: Callable[[], R]) -> R:
        """Keep the secret random numbers of records."""
        with self._allow():
            value = self._choose_hidden(draw, compute)
        self.transcript.hidden[self.stream].append(Hidden(draw, copy.deepcopy(value)))
        return value

    def note_charges(self, charges: Iterable[Charge], *, paid: bool) -> None:
        """Keep the charges."""
        self.transcript.add(Noted(tuple(charges), paid))

    def seed_(self, generator: Generator) -> None:
        """Remember that a loss draws from the generator until the next release."""
        self.transcript.loss = self.stream
        with self._allow():
            super().seed_(generator)

    def draw_seed(self) -> int:
        """Return a seed of hidden randomness."""
        with self._allow():
            return super().draw_seed()

    def _choose_release(self, draw: Draw, compute: Callable[[], R]) -> R:  # noqa: ARG002
        return compute()

    def _choose_hidden(self, draw: HiddenDraw, compute: Callable[[], R]) -> R:  # noqa: ARG002
        return compute()

    @contextmanager
    def _allow(self) -> Iterator[None]:
        before, self._is_inside = self._is_inside, True
        try:
            yield
        finally:
            self._is_inside = before

    @property
    def _rng(self) -> np.random.Generator:
        if not self._is_inside:  # noise that an audit would not see
            self.transcript.unseen.append(self.stream)
        return super()._rng


class ReplayingSource(RecordingSource):
    """Releases what another fit has released, and notes the exact values of this one. NOT PRIVATE.

    Secret random numbers of common records are those of the other fit. A record that was added is in a batch with
    probability ½, and in each that would be empty without it.

    Args:
        seed: of the other fit's noise.
        transcript: is written.
        before: the transcript of the other fit.
        added: the positions of the added examples, ascending: of records, or of people if an example is a person.
    """

    def __init__(
        self, seed: int, transcript: Transcript, before: Transcript, added: tuple[int, ...], *, _stream: Stream = ()
    ) -> None:
        super().__init__(seed, transcript, _stream=_stream)
        self._before, self._added = before, np.array(added, np.int64)

    def _derive(self, seed: int, stream: Stream) -> RecordingSource:
        added = tuple(self._added.tolist())
        return ReplayingSource(seed, self.transcript, self._before, added, _stream=stream)

    def _choose_release(self, draw: Draw, compute: Callable[[], R]) -> R:  # noqa: ARG002
        number = len(self.transcript.released[self.stream])
        recorded = self._before.released.get(self.stream, [])
        where = f"draw {number + 1}{_describe_stream(self.stream)}"
        if number >= len(recorded):
            raise ReplayDivergenceError(f"{where}: {draw.signature[0]} is drawn that was not drawn before")
        found = recorded[number]
        if found.draw.signature != draw.signature:
            raise ReplayDivergenceError(f"{where}: {_describe_change(found.draw.signature, draw.signature)}")
        return cast(R, copy.deepcopy(found.value))

    def _choose_hidden(self, draw: HiddenDraw, compute: Callable[[], R]) -> R:
        recorded = self._before.hidden.get(self.stream, [])
        if isinstance(draw, BatchDraw):
            return self._extend_batch(draw, recorded)  # type: ignore[return-value]
        if isinstance(draw, PairingDraw):
            return self._extend_pairing(draw, recorded)  # type: ignore[return-value]
        return cast(R, self._extend_rows(draw.positions, recorded, compute()))

    def _extend_batch(self, draw: BatchDraw, recorded: list[Hidden]) -> Integers:
        """Return the recorded batch, at the new positions of its records, and the added records last."""
        number = len(self.transcript.hidden[self.stream])
        where = f"batch {number + 1}{_describe_stream(self.stream)}"
        if number >= len(recorded):
            raise ReplayDivergenceError(f"{where}: a batch is drawn that was not drawn before")
        if recorded[number].draw.signature != draw.signature:
            raise ReplayDivergenceError(f"{where}: {_describe_change(recorded[number].draw.signature, draw.signature)}")
        batch = self._find_common(draw.records)[recorded[number].value]
        chosen = self._rng.random(len(self._added)) < (_MEMBER if len(batch) else 1.0)
        return np.concatenate([batch, self._added[chosen]])

    def _extend_pairing(self, draw: PairingDraw, recorded: list[Hidden]) -> Integers:
        """Return the recorded pairs; an added record replaces one in its pair, or is paired with one left over."""
        order: Integers = self._find_common(draw.records)[recorded[len(self.transcript.hidden[self.stream])].value]
        for place in self._added.tolist():
            order = np.append(order, place)
            if len(order) % 2:  # it would be left over
                other = int(self._rng.integers(len(order)))
                order[[other, -1]] = order[[-1, other]]
        return order

    def _extend_rows(self, positions: Integers, recorded: list[Hidden], fresh: Any) -> Any:
        """Return fresh rows, and the recorded ones of common records."""
        rows: dict[int, list[Any]] = defaultdict(list)
        for each in recorded:
            for position, row in zip(each.draw.positions.tolist(), each.value, strict=True):  # type: ignore[union-attr]
                rows[position].append(row)
        for each in self.transcript.hidden[self.stream]:  # those have been used
            for position in each.draw.positions.tolist():  # type: ignore[union-attr]
                if position not in self._added:
                    rows[self._find_base(position)].pop(0)
        found = np.array(fresh)
        for place, position in enumerate(positions.tolist()):
            if position not in self._added:
                found[place] = rows[self._find_base(position)][0]
        return found

    def _find_common(self, count: int) -> Integers:
        """Return the new position of each record that is in both."""
        return np.delete(np.arange(count), self._added)

    def _find_base(self, position: int) -> int:
        """Return the position that a common record had before."""
        return position - int((self._added < position).sum())


def _describe_stream(stream: Stream) -> str:
    return f" of {' '.join(map(str, stream))}" if stream else ""


def _describe_change(before: Signature, after: Signature) -> str:
    if before[0] != after[0]:
        return f"{before[0]} became {after[0]}"
    return f"{before[0]} with {_shorten(before[1:])} became one with {_shorten(after[1:])}"


def _shorten(values: Signature) -> str:
    text = ", ".join(map(str, values))
    return text if len(text) <= 80 else text[:77] + "..."
