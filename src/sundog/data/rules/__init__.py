"""Rules between columns, one file for each kind: which records satisfy it, and how it is written in a schema.

Text is a comparison or a sum; a mapping is of the kind whose keys it has. A kind of your own is a class that derives
from `Rule`, listed in `KINDS` below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sundog.data.columns import AnyColumn
from sundog.data.rules.allowed_combinations import AllowedCombinations
from sundog.data.rules.column_sum import ColumnSum
from sundog.data.rules.functional_dependency import FunctionalDependency
from sundog.data.rules.implication import Implication
from sundog.data.rules.null_together import NullTogether
from sundog.data.rules.ordering import Ordering
from sundog.data.rules.rule import BoundRule, Derivation, Domain, Rule
from sundog.data.rules.rule_set import BrokenRule, RuleSet
from sundog.data.rules.rule_text import parse_text
from sundog.data.validation_errors import describe_value, explain, suggest

KINDS: tuple[type[Rule], ...] = (FunctionalDependency, AllowedCombinations, NullTogether, Implication)  # as mappings
MOST_RULES = 256
MOST_VALUES = 65_536  # listed by all rules together


def read_rules(given: Any, columns: Mapping[str, AnyColumn], nulls: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules of a schema, checked against its columns and each other; a ValueError says what is wrong."""
    if not isinstance(given, list | tuple):
        raise ValueError(f"rules must be a list, got {describe_value(given)}; begin each rule with a dash")
    if len(given) > MOST_RULES:
        raise ValueError(f"there are {len(given):,} rules, more than {MOST_RULES}; keep those you need")
    rules: list[Rule] = []
    for number, each in enumerate(given, 1):
        rule = _read_rule(number, each, columns)
        if rule in rules:
            raise ValueError(f"rule {number} ({rule.short}): is given twice; keep one")
        rules.append(rule)
        if sum(rule.size for rule in rules) > MOST_VALUES:
            raise ValueError(
                f"rule {number} ({rule.short}): rules list more than {MOST_VALUES:,} values; use smaller tables"
            )
    bound = RuleSet.bind(rules, Domain(columns, nulls))
    bound.check()
    for each in bound.derivations:
        _check_derived(each, columns)
    return tuple(rules)


def _check_derived(rule: Derivation, columns: Mapping[str, AnyColumn]) -> None:
    """Refuse what nobody measures of a derived column, and one that would make its sources public."""
    name, column = rule.derived, columns[rule.derived]
    if column.public and not all(columns[source].public for source in rule.sources):
        raise ValueError(f"rules: column {name!r} is public and follows from private ones; remove public")
    if column.awaits_edges:
        raise ValueError(f"rules: column {name!r} is derived, so nothing is measured of it; remove its bins")


def _read_rule(number: int, given: Any, columns: Mapping[str, AnyColumn]) -> Rule:
    try:
        rule = given if isinstance(given, Rule) else _parse_rule(given, columns)
        if isinstance(again := rule.to_dict(), str) and parse_text(again, columns) != rule:
            raise ValueError("the names of its columns are too much alike to be told apart; rename one")
    except ValidationError as error:
        raise ValueError(f"rule {number}: {explain(error, {'': _keys(_kind_of(given))})}") from None
    except ValueError as error:
        raise ValueError(f"rule {number}: {error}") from None
    return rule


def _parse_rule(given: Any, columns: Mapping[str, AnyColumn]) -> Rule:
    if isinstance(given, str):
        return parse_text(given, columns)
    if not isinstance(given, dict):
        raise ValueError(
            f"must be text such as a <= b, or a mapping such as {{when: …, then: …}}, got {describe_value(given)}"
        )
    return _kind_of(given).model_validate(given)


def _kind_of(given: Mapping[Any, Any]) -> type[Rule]:
    """Return the kind of rule that has most of the keys."""
    kind = max(KINDS, key=lambda kind: len(set(_keys(kind)) & set(given)))
    if not set(_keys(kind)) & set(given):
        known = [key for kind in KINDS for key in _keys(kind)]
        first = next(iter(given), None)
        raise ValueError(f"unknown key {describe_value(first)}; {suggest(first, known)}")
    return kind


def _keys(kind: type[Rule]) -> list[str]:
    return [str(field.validation_alias or name) for name, field in kind.model_fields.items()]


__all__ = [
    "KINDS",
    "AllowedCombinations",
    "BoundRule",
    "BrokenRule",
    "ColumnSum",
    "Derivation",
    "Domain",
    "FunctionalDependency",
    "Implication",
    "NullTogether",
    "Ordering",
    "Rule",
    "RuleSet",
    "read_rules",
]
