"""All rules of a schema together: which columns are derived, in which order, and which records satisfy every rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from sundog.data.code_set import CodeSet
from sundog.data.columns.arrow import Mask
from sundog.data.rules.ordering import Ordering
from sundog.data.rules.rule import BoundRule, Codes, Derivation, Domain, Rule


@dataclass(frozen=True)
class BrokenRule:
    """A rule that some records break.

    Args:
        rule: the rule.
        count: how many records break it.
        first: the first of them, from 0.
    """

    rule: Rule
    count: int
    first: int


@dataclass(frozen=True)
class RuleSet:
    """The rules of a schema, bound to its columns.

    Args:
        rules: each as it was declared, and bound.
        derivations: those that derive a column, each after those that it depends on.
    """

    rules: tuple[tuple[Rule, BoundRule], ...]
    derivations: tuple[Derivation, ...]

    @classmethod
    def bind(cls, rules: Iterable[Rule], domain: Domain) -> RuleSet:
        """Bind all rules; a ValueError names the one that does not fit the columns."""
        bound = []
        for number, rule in enumerate(rules, 1):
            try:
                bound.append((rule, rule.bind(domain)))
            except ValueError as error:
                raise ValueError(f"rule {number} ({rule.short}): {error}") from None
        return cls(tuple(bound), _sort([each for _, each in bound if isinstance(each, Derivation)]))

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def derived(self) -> frozenset[str]:
        """The columns that are derived."""
        return frozenset(each.derived for each in self.derivations)

    @property
    def rejects(self) -> bool:
        """Whether a record that a model draws may break a rule, so that it must be drawn again."""
        return any(not isinstance(each, Derivation) or each.may_fail for _, each in self.rules)

    def derive(self, codes: Mapping[str, Any]) -> tuple[dict[str, Any], Mask | None]:
        """Return codes with those of derived columns added, and which records have them; None where all do."""
        found, known = dict(codes), None
        for each in self.derivations:
            found[each.derived], possible = each.derive(found)
            if each.may_fail:
                known = possible if known is None else known & possible
        return found, known

    def holds(self, codes: Codes) -> Mask:
        """Return which records satisfy every rule; derived columns must be there."""
        return np.asarray(np.logical_and.reduce([each.holds(codes) for _, each in self.rules]))

    def find_broken(self, codes: Codes) -> list[BrokenRule]:
        """Return the rules that some records break, with how many do."""
        found = []
        for rule, bound in self.rules:
            broken = ~bound.holds(codes)
            if broken.any():
                found.append(BrokenRule(rule, int(broken.sum()), int(broken.argmax())))
        return found

    def translate(self, where: Mapping[str, CodeSet]) -> tuple[dict[str, CodeSet], dict[str, CodeSet]]:
        """Return conditions on columns that are not derived, and those on derived columns that have no translation.

        A condition on a column that follows from another by a table is one on that other column. One on a sum must be
        checked after the record is drawn.
        """
        given, later = dict(where), {}
        for each in reversed(self.derivations):
            if each.derived not in given:
                continue
            allowed = given.pop(each.derived)
            source = each.translate(allowed)
            if source is None:
                later[each.derived] = allowed
            else:
                name = each.sources[0]
                given[name] = given[name] & source if name in given else source
        return given, later

    def check(self) -> None:
        """Raise ValueError where rules contradict the columns or each other."""
        for number, (rule, bound) in enumerate(self.rules, 1):
            if problem := bound.find_contradiction():
                raise ValueError(f"rule {number} ({rule.short}): {problem}")
        _refuse_circles([rule for rule, _ in self.rules])


def _sort(derivations: list[Derivation]) -> tuple[Derivation, ...]:
    """Return each after those that derive its sources."""
    by_name: dict[str, Derivation] = {}
    for each in derivations:
        if each.derived in by_name:
            raise ValueError(f"rules: column {each.derived!r} is derived twice; keep one rule for it")
        by_name[each.derived] = each
    try:
        order = list(TopologicalSorter({name: each.sources for name, each in by_name.items()}).static_order())
    except CycleError as error:
        circle = " and ".join(map(repr, dict.fromkeys(error.args[1])))
        raise ValueError(f"rules: {circle} are derived from each other; leave out one of the rules") from None
    return tuple(by_name[name] for name in order if name in by_name)


def _refuse_circles(rules: list[Rule]) -> None:
    """Refuse a column that is to be below itself."""
    below: dict[str, set[str]] = {}
    for rule in rules:
        if isinstance(rule, Ordering):
            below.setdefault(rule.high, set()).add(rule.low)
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        names = [repr(name) for name in dict.fromkeys(error.args[1])]
        fix = "say that one equals the other (a = b)" if len(names) == 2 else "leave out one of the rules"
        raise ValueError(f"rules: {' and '.join(names)} are each to be below the other; {fix}") from None
