"""The rules of the schema, checked on private and public records before anything is spent.

What is found is for the curator's eyes: a fit whose records break a rule measures nothing and writes nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

from sundog.data.reading.read import Raw, encode
from sundog.data.records import Records
from sundog.data.rules import BrokenRule
from sundog.data.schema import Schema
from sundog.errors import BrokenRulesError
from sundog.progress import Progress
from sundog.release.rejection_sampling import LEAST_ACCEPTED
from sundog.release.release import Release


def refuse_broken_rules(raw: Raw, schema: Schema, records: Records | None) -> None:
    """Raise BrokenRulesError, with a line for each rule, if some records break rules.

    Args:
        raw: what was read.
        schema: with rules.
        records: what was read, encoded; None where the schema is to be completed first. Rules are only about columns
            that are declared, so these can be encoded all the same.
    """
    rules = schema.bind_rules()
    if not rules:
        return
    if records is None:
        names = {name for _, bound in rules.rules for name in bound.names}
        columns = {name: column for name, column in schema.columns.items() if name in names}
        only = replace(raw, columns={name: raw.columns[name] for name in columns})
        records = encode(only, schema.model_copy(update={"columns": columns, "rules": ()}))
    used = "" if records.count == raw.count else f" (first {schema.cap} of each {schema.unit!r})"
    if broken := rules.find_broken(records.codes):
        raise BrokenRulesError([f"{raw.name}{used}: {_describe(each, records.count)}" for each in broken])


def report_acceptance(release: Release, progress: Progress) -> None:
    """Say how often the model's records satisfy the rules, and warn if they hardly ever do."""
    if not release.schema.bind_rules().rejects:
        return
    share = release.measure_acceptance()
    progress(f"rules: {share:.1%} of the model's records satisfy them; sampling draws the others again\n", 0.0)
    if share < 10 * LEAST_ACCEPTED:
        warnings.warn(
            f"only {share:.1%} of the model's records satisfy the rules of the schema, so that sampling is slow or "
            "fails; derive a column instead (docs/rules.md), or choose a model that learns these columns together",
            stacklevel=4,
        )


def _describe(broken: BrokenRule, count: int) -> str:
    rows = f"{broken.count:,} of {count:,} rows break" if broken.count > 1 else f"1 of {count:,} rows breaks"
    first = f"the first is row {broken.first + 1}" if broken.count > 1 else f"row {broken.first + 1}"
    return f"{rows} the rule `{broken.rule.short}`, {first}; fix the rows, or remove the rule"


def drop_derived(records: Records, modelled: Schema) -> Records:
    """Return the records without the columns that rules derive."""
    return replace(records, schema=modelled, codes={name: records.codes[name] for name in modelled.columns})
