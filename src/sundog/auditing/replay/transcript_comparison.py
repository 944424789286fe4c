"""What two runs on neighbouring inputs did differently, although the same values were released.

If nothing differs, the run is a function of the released values alone. If the exact values of each draw differ by no
more than was charged, its privacy follows from that of the draws (docs/audit_replay.md).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sundog.auditing.replay.draw_costs import Neighbours, add_charges, add_costs, compare_costs, find_excess
from sundog.auditing.replay.execution import Execution
from sundog.privacy.draws import GaussianDraw
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.transcript import Noted, Released, Transcript

_MOST = 3  # differences of one kind that are listed


@dataclass(frozen=True)
class Difference:
    """One thing that the released values do not explain.

    Args:
        added: what the one input has and the other has not.
        where: the place.
        what: the difference, in one line.
    """

    added: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} (added: {self.added})"


def compare_runs(before: Execution, after: Execution, added: str) -> list[Difference]:
    """Return how a replayed run differs from the recorded one.

    Args:
        before: without the unit.
        after: with it.
        added: the unit, for messages.
    """
    if after.error != before.error and not after.transcript.events:
        return []  # refused before anything was charged: only the curator sees that
    found = [
        *_compare_ends(before, after),
        *_compare_events(before.transcript, after.transcript),
        *_compare_batches(before.transcript, after.transcript),
        *_compare_lists("progress messages", before.messages, after.messages),
        *_compare_lists("warnings and logs", before.warnings, after.warnings),
        *(_compare_outputs(before.outputs, after.outputs) if after.divergence is None else ()),
        *find_excesses(before.transcript, after.transcript),
    ]
    return [Difference(added, where, what) for where, what in found]


def find_excesses(before: Transcript, after: Transcript) -> Iterator[tuple[str, str]]:
    """Yield which draws cost more than the charge before them, and what all of them cost more than all charges."""
    pairs: list[Neighbours] = []
    for charges, draws in _list_windows(before, after):
        pairs += draws
        where = ", ".join(dict.fromkeys(charge.purpose for charge in charges)) or "before the first charge"
        yield from ((where, excess) for excess in find_excess(charges, draws))
    paid = _list_paid(before)
    sampled = sum(charge.count for charge in paid if isinstance(charge.event, SampledGaussian))
    if sampled:  # steps were compared one at a time; the cost of one is the same in all parts of a mixture
        steps = {id(each) for each in _list_steps(before, after)}
        pairs = [each for each in pairs if id(each.before) not in steps]
    yield from (("all draws together", excess) for excess in compare_costs(add_costs(pairs), add_charges(paid)))


def _list_windows(before: Transcript, after: Transcript) -> Iterator[tuple[tuple[Charge, ...], list[Neighbours]]]:
    """Yield the charges that a mechanism made, and the draws between them and the next."""
    charges: tuple[Charge, ...] = ()
    draws: list[Neighbours] = []
    for (first, _), (second, _) in zip(before.events, after.events, strict=False):
        if isinstance(first, Released) and isinstance(second, Released):
            draws.append(Neighbours(first.draw, second.draw))
        elif isinstance(first, Noted):
            if draws:
                yield charges, draws
            charges, draws = first.charges, []
    if draws:
        yield charges, draws


def _list_steps(before: Transcript, after: Transcript) -> Iterator[Any]:
    """Yield the draws of training steps in the recorded run."""
    for charges, draws in _list_windows(before, after):
        if any(isinstance(charge.event, SampledGaussian) for charge in charges):
            yield from (each.before for each in draws if isinstance(each.before, GaussianDraw))


def _compare_ends(before: Execution, after: Execution) -> Iterator[tuple[str, str]]:
    if after.divergence is not None:
        yield "order of draws", after.divergence
    elif before.error != after.error:
        yield "end", f"{before.error or 'a release'} became {after.error or 'a release'}, after something was charged"


def _compare_events(before: Transcript, after: Transcript) -> Iterator[tuple[str, str]]:
    """Yield the first charge or draw that differs, and the first difference between the files beside them."""
    stages = "start"
    for (first, files), (second, others) in zip(before.events, after.events, strict=False):
        if isinstance(first, Noted):
            stages = ", ".join(dict.fromkeys(charge.purpose for charge in first.charges))
        if _describe_event(first) != _describe_event(second):
            yield "order of charges and draws", f"{_name_event(first)} became {_name_event(second)}"
            return
        if files != others:
            yield f"files of the checkpoint, at {stages}", _describe_change(files, others)
            return
    if len(before.events) != len(after.events):
        yield "order of charges and draws", f"{len(before.events)} became {len(after.events)}"


def _describe_event(event: Noted | Released) -> tuple[Any, ...]:
    if isinstance(event, Noted):
        return event.charges, event.paid
    return event.stream, event.draw.signature


def _name_event(event: Noted | Released) -> str:
    if isinstance(event, Released):
        return str(event.draw.signature[0])
    return "charges for " + "; ".join(f"{each.purpose} ({each.count} × {each.event!r})" for each in event.charges)


def _compare_batches(before: Transcript, after: Transcript) -> Iterator[tuple[str, str]]:
    """Yield differences in the number of batches, and charged steps without a Poisson batch at their rate."""
    if before.unseen or after.unseen:
        yield "noise", f"drawn outside of a mechanism in {len(before.unseen or after.unseen)} places"
    drawn = {stream for stream in before.hidden.keys() | after.hidden.keys() if stream[-2:-1] == ("batch",)}
    for stream in sorted(drawn, key=str):
        counts = [len(each.hidden.get(stream, ())) for each in (before, after)]
        if counts[0] != counts[1]:
            yield f"batches of {stream[0]}", f"step {stream[-1]} drew {counts[0]} and then {counts[1]} batches"
            return
    rates = Counter(each.draw.signature[1] for stream in drawn for each in before.hidden.get(stream, ()))
    paid = Counter[float]()
    for charge in _list_paid(before):
        if isinstance(charge.event, SampledGaussian):
            paid[charge.event.sample_rate] += charge.count
    if rates != paid:
        yield "batches", f"drawn at the rates {_count_rates(rates)}, and charged at {_count_rates(paid)}"


def _count_rates(steps: Counter[float]) -> str:
    return ", ".join(f"{rate:.4g} ({count} steps)" for rate, count in sorted(steps.items())) or "none"


def _list_paid(run: Transcript) -> list[Charge]:
    """Return all charges that a ledger recorded."""
    return [charge for event, _ in run.events if isinstance(event, Noted) and event.paid for charge in event.charges]


def _compare_lists(name: str, before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the first difference."""
    for first, second in itertools.zip_longest(before, after):
        if first != second:
            yield name, _describe_change(first, second)
            return


def _compare_outputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return the first few outputs that differ."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    found = [(name, _describe_change(before.get(name), after.get(name))) for name in names[:_MOST]]
    return found + ([("outputs", f"{len(names) - _MOST} more differ")] if len(names) > _MOST else [])


def _describe_change(before: Any, after: Any) -> str:
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        changed = [(first, second) for first, second in zip(before, after, strict=True) if first != second]
        if any(isinstance(value, bytes) for pair in changed for value in pair):
            return "other numbers"
        before, after = changed[0] if len(changed) == 1 else (before, after)
    return f"{_shorten(before)} became {_shorten(after)}"


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."
