"""Neighbouring inputs: a table without and with one unit, which is chosen to hurt.

A unit is a record or, with `unit:` in the schema, a person with several records. The values of an added record are
extremes, missing values, copies, other spellings of valid values, and values that a column does not declare.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.auditing.replay.sources import Source, Table
from sundog.auditing.replay.values import NO_SPELLING, Kind, classify_value, iterate_spellings, list_hostile
from sundog.data.schema import Schema

Record = dict[str, Any]
Draft = tuple[Kind, str, Record | int]  # a record to add, or the place of one to remove, with a name

NEW_PERSON = "n3w"  # of whom no other record is
_BEYOND_CAP = 3  # more records than a person may have
_TRIED = 20  # records, of which the one with most declared values is changed


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables.

    Args:
        name: what was added, for messages.
        without: the table without the unit.
        places: where the records of the unit are in the other table, ascending.
        records: of the unit.
        kind: what they are. With a removal, the other table is the one that was given.
    """

    name: str
    without: Table
    places: tuple[int, ...]
    records: tuple[Record, ...]
    kind: Kind

    @property
    def joined(self) -> Table:
        """The table with the unit."""
        joined = {name: list(values) for name, values in self.without.items()}
        for place, record in zip(self.places, self.records, strict=True):
            for name, values in joined.items():
                values.insert(place, record[name])
        return joined


def list_pairs(source: Source, schema: Schema, *, seed: int = 0) -> Iterator[Pair]:
    """Yield pairs of all kinds by turns: units that are added first, last and in between, or removed.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 99}}})
    >>> pairs = list_pairs(Source({"age": [31, 47]}, lambda table, _: table), schema)
    >>> [pair.name for pair in itertools.islice(pairs, 3)]
    ['smallest values', 'record 1 of the data', "values with more digits: age = Decimal('47.000')"]
    """
    return _Drafts(source, schema, seed).iterate_pairs()


class _Drafts:
    """The neighbours of one source."""

    def __init__(self, source: Source, schema: Schema, seed: int) -> None:
        self._table, self._is_text, self._schema = source.table, source.is_text, schema
        self._columns = {name: column for name, column in schema.columns.items() if name in source.table}
        self._count = len(next(iter(source.table.values())))
        places = np.random.default_rng(seed).integers(self._count, size=_TRIED).tolist()
        self._usual = self._take(max(places, key=self._count_valid))  # one record, which keeps the rules of the schema

    def iterate_pairs(self) -> Iterator[Pair]:
        """Yield a pair of each stream by turns, until all streams are used up."""
        streams = (self._draft_extremes(), self._draft_removals(), self._draft_spellings(), self._draft_hostile())
        for turn, drafts in enumerate(itertools.zip_longest(*streams)):
            place = (0, self._count, self._count // 2)[turn % 3]
            for kind, name, draft in (each for each in drafts if each is not None):
                if isinstance(draft, int):
                    yield self._remove(name, draft)
                elif self._schema.unit is None:
                    yield Pair(name, self._table, (place,), (draft,), kind)
                else:
                    yield self._add_person(name, draft, place, kind)

    # --- records ---

    def _draft_extremes(self) -> Iterator[Draft]:
        """Yield the first, the last and missing values of all columns that are declared in full, and copies."""
        complete = {name: column for name, column in self._columns.items() if column.complete and column.is_scalar}
        ends: dict[str, dict[str, tuple[Any, Any]]] = {
            "smallest values": {name: (column, 0) for name, column in complete.items()},
            "largest values": {name: (column, column.lattice_size - 1) for name, column in complete.items()},
            "missing values": {name: (each, each.null_code) for name, each in complete.items() if each.nullable},
        }
        for title, chosen in ends.items():
            if chosen:
                values = {name: column.to_json(np.array([code]))[0] for name, (column, code) in chosen.items()}
                kind = Kind.MISSING if title == "missing values" else Kind.EXTREME
                yield kind, title, {**self._usual, **values}
        for place, title in ((0, "a copy of the first record"), (self._count - 1, "a copy of the last record")):
            yield Kind.COPY, title, self._take(place)

    def _draft_removals(self) -> Iterator[Draft]:
        for place in sorted({0, self._count // 2, self._count - 1}):
            yield Kind.REMOVAL, f"record {place + 1} of the data", place

    def _draft_spellings(self) -> Iterator[Draft]:
        """Yield records of values that are spelled otherwise: in all columns at once, then in one at a time.

        Those that a column does not declare in this spelling, and takes nevertheless, are in records of their own.
        """
        single: list[Draft] = []
        spelled = {name: self._spell(name) for name in self._columns}
        for style in dict.fromkeys(style for found in spelled.values() for style in found):
            row = [(name, *found[style]) for name, found in spelled.items() if style in found]
            for kind in dict.fromkeys(kind for _, kind, _ in row):
                chosen = {name: value for name, own, value in row if own is kind}
                yield kind, f"values {style}: {_name_values(chosen)}", {**self._usual, **chosen}
                single += self._draft_each(kind, chosen)
        yield from single

    def _draft_hostile(self) -> Iterator[Draft]:
        """Yield records of values of other types, or that are not declared: in all columns that take them, then in one.

        What a column refuses is tried in one column at a time: it must be refused before anything is charged.
        """
        single: list[Draft] = []
        rows = itertools.zip_longest(*([(name, each) for each in self._list_hostile(name)] for name in self._columns))
        for turn, row in enumerate(rows):
            known = [(name, value, self._classify(name, value)) for name, value in filter(None, row)]
            for kind in dict.fromkeys(kind for _, _, kind in known if kind is not None):
                chosen = {name: value for name, value, own in known if own is kind}
                yield kind, _name_values(chosen), {**self._usual, **chosen}
                single += self._draft_each(kind, chosen)
            if refused := [(name, value) for name, value, own in known if own is None]:
                name, value = refused[turn % len(refused)]
                yield Kind.UNDECLARED, _name_values({name: value}), {**self._usual, name: value}
        yield from single

    def _draft_each(self, kind: Kind, chosen: Mapping[str, Any]) -> list[Draft]:
        """Return records with one of several values each."""
        some = chosen.items() if len(chosen) > 1 else ()
        return [(kind, _name_values({name: value}), {**self._usual, name: value}) for name, value in some]

    def _take(self, place: int) -> Record:
        return {name: values[place] for name, values in self._table.items()}

    def _count_valid(self, place: int) -> int:
        """Return how many values of a record are declared and not missing, so that they can be spelled otherwise."""
        kinds = [self._classify(name, self._table[name][place]) for name in self._columns]
        return sum(kind in (Kind.SPELLING, Kind.EXTREME) for kind in kinds)

    def _spell(self, name: str) -> dict[str, tuple[Kind, Any]]:
        """Return the usual value in each spelling that the column takes, and what it is for the column."""
        column, usual = self._columns[name], self._usual[name]
        seen, found = {repr(usual)}, {}
        for style, spell in iterate_spellings(column):
            try:
                value = self._write(spell(usual))
            except NO_SPELLING:
                continue
            kind = self._classify(name, value)
            if repr(value) not in seen and kind is not None:
                seen.add(repr(value))
                is_valid = kind is Kind.EXTREME or not column.complete
                found[style] = (Kind.SPELLING if is_valid else kind, value)
        return found

    def _list_hostile(self, name: str) -> list[Any]:
        return [self._write(value) for value in list_hostile(self._columns[name])]

    def _classify(self, name: str, value: Any) -> Kind | None:
        return classify_value(self._columns[name], value, nulls=self._schema.nulls if self._is_text else ())

    def _write(self, value: Any) -> Any:
        """Return the value as the source holds it."""
        if not self._is_text:
            return value
        return "" if value is None else str(value)

    # --- units ---

    def _add_person(self, name: str, record: Record, place: int, kind: Kind) -> Pair:
        """Return a pair with a new person, who has more records than the cap, from one place on and at the end."""
        unit, cap = str(self._schema.unit), self._schema.cap
        ids = self._table[unit]
        new: Any = max(ids) + 1 if all(isinstance(each, int) for each in ids) else NEW_PERSON
        records = [{**record, unit: new} for _ in range(cap + _BEYOND_CAP)]
        places = [place, *range(self._count + 1, self._count + len(records))]
        return Pair(name, self._table, tuple(places), tuple(records), kind)

    def _remove(self, name: str, place: int) -> Pair:
        """Return a pair of the table and the same without the unit that a record belongs to."""
        places = [place]
        if self._schema.unit is not None:
            ids = [str(value).strip() for value in self._table[self._schema.unit]]
            places = [number for number, owner in enumerate(ids) if owner == ids[place]]
        gone = set(places)
        kept = [number for number in range(self._count) if number not in gone]
        without = {name: [values[number] for number in kept] for name, values in self._table.items()}
        records = tuple(self._take(number) for number in places)
        return Pair(name, without, tuple(places), records, Kind.REMOVAL)


def _name_values(values: Mapping[str, Any]) -> str:
    name, value = next(iter(values.items()))
    rest = f" and {len(values) - 1} more columns" if len(values) > 1 else ""
    return f"{name} = {_shorten(value)}{rest}"


def _shorten(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:37]}..."
