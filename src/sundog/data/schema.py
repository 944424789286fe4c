"""The schema: what is publicly known about a dataset before anyone looks at it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sundog import notebook
from sundog.data import schema_yaml
from sundog.data.columns import AnyColumn, Column, Form, ScalarColumn, list_column_types
from sundog.data.rules import Domain, Rule, RuleSet, read_rules
from sundog.data.validation_errors import describe_value, explain, suggest
from sundog.errors import SchemaError

MOST_COLUMNS = 4096
MOST_EDGES, MOST_VALUES = 65_536, 250_000  # of all columns together


class Schema(BaseModel):  # noqa: PLW1641  pydantic gives a frozen model its hash
    """The declared columns, and how records belong to people.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 17, "max": 90}}})
    >>> schema.columns["age"].size
    74
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sundog: Literal[1] = 1
    reviewed: bool = True
    records: Annotated[int, Field(ge=1, le=10**11)] | None = None
    unit: StrictStr | None = None
    cap: Annotated[int, Field(ge=1, le=10_000)] = 1
    target: StrictStr | None = None  # the column that users of the records will predict
    delimiter: Annotated[StrictStr, Field(min_length=1, max_length=1)] = ","
    nulls: Annotated[tuple[StrictStr, ...], Field(min_length=1)] = ("",)
    columns: dict[StrictStr, AnyColumn]
    rules: tuple[Rule, ...] = ()
    _comments: schema_yaml.Comments = PrivateAttr(default=schema_yaml.NO_COMMENTS)

    @field_validator("rules", mode="plain")
    @classmethod
    def _read_rules(cls, given: Any, info: ValidationInfo) -> tuple[Rule, ...]:
        if "columns" not in info.data or "nulls" not in info.data:
            return ()  # their own errors are reported
        return read_rules(given, info.data["columns"], info.data["nulls"])

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if not self.columns:
            raise ValueError("columns is empty; declare at least one column")
        if not self.delimiter.isascii() or self.delimiter in '"\r\n\0':
            raise ValueError(
                f"delimiter {describe_value(self.delimiter)} cannot separate fields; use one such as ',' or ';'"
            )
        if "" in self.columns:
            raise ValueError("a column has an empty name; name it")
        if self.unit in self.columns:
            raise ValueError(f"column {self.unit!r} is the privacy unit and is not synthesised; remove it from columns")
        if self.target is not None and self.target not in self.columns:
            hint = suggest(self.target, [*self.columns])
            raise ValueError(f"there is no column {self.target!r} to be the target; {hint}")
        public = [name for name, column in self.columns.items() if column.public]
        if public and self.unit is not None:
            raise ValueError(
                f"column {public[0]!r} is public, which would reveal whose records were left out; remove public or unit"
            )
        if self.unit is None and "cap" in self.model_fields_set:
            raise ValueError("cap is given without unit; name the column of the privacy unit in `unit`")
        for name, column in self.scalars.items():
            if problem := column.find_dtype_problem():
                raise ValueError(f"column {name!r}: {problem}")
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether both schemas declare the same; comments are ignored."""
        return isinstance(other, Schema) and self.__dict__ == other.__dict__

    @property
    def scalars(self) -> dict[str, ScalarColumn]:
        """The columns with one value a record."""
        return {name: column for name, column in self.columns.items() if column.form is Form.SCALAR}

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be learned."""
        return all(column.complete for column in self.columns.values())

    def aim_at(self, target: str) -> Schema:
        """Return the same schema with a target: the column that users of the records will predict.

        >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 17, "max": 90}}})
        >>> schema.aim_at("age").target
        'age'
        """
        return Schema.from_dict({**self.to_dict(), "target": target})

    @property
    def modelled(self) -> Schema:
        """The schema of what a model learns: without the columns that rules derive, and the rules about those.

        >>> columns = {"a": {"type": "boolean"}, "b": {"type": "boolean"}}
        >>> rule = {"column": "b", "from": "a", "table": {"true": "false", "false": "true"}}
        >>> list(Schema.from_dict({"columns": columns, "rules": [rule]}).modelled.columns)
        ['a']
        """
        bound = self.bind_rules()
        if not bound.derived:
            return self
        columns = {name: column for name, column in self.columns.items() if name not in bound.derived}
        rules = tuple(rule for rule, each in bound.rules if not bound.derived & set(each.names))
        target = None if self.target in bound.derived else self.target
        return self.model_copy(update={"columns": columns, "rules": rules, "target": target})

    def bind_rules(self) -> RuleSet:
        """Return the rules for the codes of the columns."""
        return RuleSet.bind(self.rules, Domain(self.columns, self.nulls))

    def declare_learned(self) -> Schema:
        """Return the schema with all learned columns as declared ones, which are not learned again."""
        finished = {name: column.declare_learned() for name, column in self.columns.items() if column.is_learned}
        return self.with_columns(finished) if finished else self

    def with_columns(self, columns: Mapping[str, Column]) -> Schema:
        """Return the same schema with some columns replaced or added."""
        changed = {**self._to_data(), "columns": {**self.columns, **columns}, "rules": self.rules}
        return self._validate_data(changed, "schema")

    def with_rules(self, rules: Sequence[Rule | str | Mapping[str, Any]]) -> Schema:
        """Return the same schema with these rules instead of its own."""
        return self._validate_data({**self._to_data(), "columns": self.columns, "rules": list(rules)}, "schema")

    @classmethod
    def from_dict(cls, data: Any, where: str = "schema") -> Schema:
        """Return a schema from plain data; the message of a SchemaError begins with `where`."""
        if not isinstance(data, dict):
            raise SchemaError(f"{where}: must be a mapping with `columns`, got {describe_value(data)}")
        _refuse_too_large(data.get("columns"), where)
        return cls._validate_data(_with_text_keys(data, where), where)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON-serializable data, without defaults."""
        rules = {"rules": [rule.to_dict() for rule in self.rules]} if self.rules else {}
        columns = {name: column.to_dict() for name, column in self.columns.items()}
        return {**self._to_data(), "columns": columns, **rules}

    @classmethod
    def of(cls, declared: Schema | str | os.PathLike[str] | Mapping[str, Any]) -> Schema:
        """Return a schema, given a schema, the path of its file, or plain data.

        >>> Schema.of({"columns": {"age": {"type": "integer", "min": 17, "max": 90}}}).columns["age"].max
        90
        """
        if isinstance(declared, Schema):
            return declared
        if isinstance(declared, str | os.PathLike):
            return cls.load(declared)
        if isinstance(declared, Mapping):
            return cls.from_dict(dict(declared))
        kind = type(declared).__name__
        raise SchemaError(
            f"schema: cannot be of type {kind}; give a Schema, the path of a schema file, or a dict with `columns`"
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file; raise SchemaError, with a message of one line, for every problem."""
        return cls.from_dict(schema_yaml.load(Path(path)), where=str(path))

    def save(self, path: str | Path) -> None:
        """Write a schema file atomically."""
        schema_yaml.save(self.to_yaml(), Path(path))

    def to_yaml(self) -> str:
        """Return the text of a schema file, with the comments of a draft."""
        rules = {"rules": [rule.to_yaml() for rule in self.rules]} if self.rules else {}
        return schema_yaml.dump({**self.to_dict(), **rules}, self._comments)

    def with_comments(
        self, columns: Mapping[str, Sequence[str]], end: Sequence[str], rules: Sequence[str] = ()
    ) -> Schema:
        """Return the same schema with comments for its file: by column, after the columns, and on the rules."""
        commented = self.model_copy()
        commented._comments = schema_yaml.Comments(columns, end, rules)
        return commented

    @classmethod
    def draft(cls, data: Any, name: str | None = None, *, suggest_rules: bool = False) -> Schema:
        """Return a draft guessed from the data, which is NOT PRIVATE until someone has reviewed it.

        Args:
            data: a path, a DataFrame, or any other source that `fit` accepts.
            name: what to call the data in messages.
            suggest_rules: whether to suggest rules between columns that all records satisfy.
        """
        from sundog.data.drafting.draft import draft

        return draft(data, name=name, suggest=suggest_rules)

    def __str__(self) -> str:
        """Return the text of its file."""
        return self.to_yaml()

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks: a table of the columns."""
        rest = {key: value for key, value in self._to_data().items() if key not in ("sundog", "reviewed")}
        columns = {name: column.to_dict() for name, column in self.columns.items()}
        rows = [(name, column.pop("type"), _format_keys(column)) for name, column in columns.items()]
        said = [] if self.reviewed else ["drafted from the data: NOT PRIVATE until it is reviewed"]
        said += [_format_keys(rest)] if rest else []
        table = notebook.build_table(rows, ("column", "type", "declared"))
        rules = [notebook.build_table([(str(rule),) for rule in self.rules], ("rule",))] if self.rules else []
        return notebook.build_fragment("Schema", *map(notebook.build_paragraph, said), table, *rules)

    def _to_data(self) -> dict[str, Any]:
        rest = self.model_dump(mode="json", exclude_defaults=True, exclude={"columns", "rules", "sundog", "reviewed"})
        return {"sundog": 1, "reviewed": self.reviewed, **rest}

    @classmethod
    def _validate_data(cls, data: dict[str, Any], where: str) -> Schema:
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SchemaError(f"{where}: {explain(error, _list_keys())}") from None


def _refuse_too_large(columns: Any, where: str) -> None:
    """Refuse too many columns, edges or values before validation: a schema file may be hostile."""
    if not isinstance(columns, dict):
        return
    if len(columns) > MOST_COLUMNS:
        raise SchemaError(f"{where}: has {len(columns):,} columns, more than {MOST_COLUMNS:,}; keep those you need")
    limits = {"edges": (MOST_EDGES, "use fewer bins"), "values": (MOST_VALUES, "group rare ones")}
    limits["universe"] = MOST_VALUES, "number the items, and give their number"
    for key, (most, fix) in limits.items():
        lists = [column.get(key) for column in columns.values() if isinstance(column, dict)]
        count = sum(len(some) for some in lists if isinstance(some, (list, tuple)))
        if count > most:
            raise SchemaError(f"{where}: all columns together have {count:,} `{key}`, more than {most:,}; {fix}")


def _with_text_keys(data: dict[Any, Any], where: str) -> dict[Any, Any]:
    """Return the data with the keys true and false (boolean spellings) as text; refuse names that are not text."""
    columns = data.get("columns")
    if not isinstance(columns, dict):
        return data
    for name in columns:
        if not isinstance(name, str):
            raise SchemaError(f"{where}: the column name {describe_value(name)} is not text; put it in quotes")
    spelled = {True: "true", False: "false"}
    return {
        **data,
        "columns": {
            name: {spelled.get(key, key) if isinstance(key, bool) else key: value for key, value in column.items()}
            if isinstance(column, dict)
            else column
            for name, column in columns.items()
        },
    }


def _format_keys(keys: Mapping[str, Any]) -> str:
    """Return the declared keys on one line, with long lists shortened."""
    return ", ".join(f"{key}: {_format_value(value)}" for key, value in keys.items())


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        more = f", … ({len(value)} in all)" if len(value) > _SHOWN else ""
        return f"[{', '.join(map(str, value[:_SHOWN]))}{more}]"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


_SHOWN = 5  # items of a list


def _list_keys() -> dict[str, tuple[str, ...]]:
    """Return the keys of the schema itself, under "", and those of each column type."""
    kinds: dict[str, type[BaseModel]] = {"": Schema, **list_column_types()}
    return {name: tuple(field.alias or key for key, field in kind.model_fields.items()) for name, kind in kinds.items()}
