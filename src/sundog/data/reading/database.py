"""Databases: a table or a query of an SQLAlchemy URL, such as `sqlite:///visits.db?table=people`.

Values are taken from the driver, each one alone: no column type of the database converts them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sundog.data.reading.python_values import open_objects, simplify_value
from sundog.data.reading.source import Source, take_first_line
from sundog.data.reading.tables import check_unique
from sundog.data.validation_errors import suggest
from sundog.errors import DataError
from sundog.extras import import_extra

_URL = re.compile(r"[a-z][a-z0-9+]*://", re.IGNORECASE)
_PASSWORD = re.compile(r"(?<=://)([^:/@?]*):.*@")  # the password may contain @ and ?


def is_url(source: object) -> bool:
    """Return whether a source is the URL of a database.

    >>> is_url("sqlite:///a.db?table=people"), is_url("a.csv")
    (True, False)
    """
    return isinstance(source, str) and _URL.match(source) is not None


def hide_secrets(url: str) -> str:
    """Return a URL to be shown: without its password and its options.

    >>> hide_secrets("postgresql://ann:se:cr@t@host/visits?table=people&sslpassword=x")
    'postgresql://ann:***@host/visits'
    """
    return _PASSWORD.sub(r"\1:***@", url).partition("?")[0]


def hide_password(url: str) -> str:
    """Return a URL to be typed again: without its password, with its table or query as the only option.

    >>> hide_password("postgresql://ann:secret@host/visits?table=people&sslpassword=x")
    'postgresql://ann:***@host/visits?table=people'
    """
    options = _PASSWORD.sub(r"\1:***@", url).partition("?")[2].split("&")
    return "?".join([hide_secrets(url), *(o for o in options if o.startswith(("table=", "query=")))])


def open_database(url: str, *, nulls: Sequence[str] = ("",)) -> Source:
    """Open a database URL: `?table=NAME` for a table or view, `?query=SELECT …` for a query.

    >>> import sqlite3
    >>> path = getfixture("tmp_path") / "t.db"
    >>> with sqlite3.connect(path) as database:
    ...     _ = database.execute("CREATE TABLE people (age)")
    ...     _ = database.execute("INSERT INTO people VALUES (31), ('old')")
    >>> database.close()
    >>> open_database(f"sqlite:///{path}?table=people").shapes
    {'age': ()}
    """
    sqlalchemy = import_extra("sqlalchemy", "sql")
    name = hide_secrets(url)
    try:
        parsed = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise DataError(f"{name}: is not a database URL; write it as sqlite:///visits.db?table=people") from None
    options = dict(parsed.query)
    table, query = options.pop("table", None), options.pop("query", None)
    if not isinstance(table or query, str) or (table is None) == (query is None):
        raise DataError(f"{name}: name one table (?table=people) or one query (?query=SELECT …) in the URL")
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise DataError(f"{name}: there is no such file; check the path")  # sqlite would create an empty one
    try:
        engine = sqlalchemy.create_engine(parsed.set(query=options))
        try:
            with engine.connect() as connection:
                statement = query or _select(sqlalchemy, connection, str(table), name)
                return _read(connection, statement, name, nulls)
        finally:
            engine.dispose()
    except sqlalchemy.exc.NoSuchModuleError:
        known = "such as sqlite, postgresql or mysql"
        raise DataError(
            f"{name}: SQLAlchemy does not support the database {parsed.drivername!r}; use one that it does, {known}"
        ) from None
    except ModuleNotFoundError as error:
        raise DataError(
            f"{name}: the driver {error.name!r} is not installed; install it with: pip install {error.name}"
        ) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        reason = take_first_line(getattr(error, "orig", None) or error)
        for secret in {parsed.password, quote(parsed.password or "", safe="")} - {None, ""}:
            reason = reason.replace(str(secret), "***")
        raise DataError(f"{name}: cannot be read ({reason}); check the URL, the table and your permissions") from None


def _select(sqlalchemy: Any, connection: Any, table: str, name: str) -> str:
    """Return the query for all of a table or view; `schema.table` names one of another schema."""
    found = sqlalchemy.inspect(connection)
    quote_name = connection.dialect.identifier_preparer.quote_identifier
    schema, dot, rest = table.rpartition(".")
    if found.has_table(table):
        return f"SELECT * FROM {quote_name(table)}"  # noqa: S608  it is quoted
    if dot and found.has_table(rest, schema=schema):
        return f"SELECT * FROM {quote_name(schema)}.{quote_name(rest)}"  # noqa: S608  it is quoted
    known = [*found.get_table_names(), *found.get_view_names()]
    hint = suggest(table, known) if known else "it has no tables"
    raise DataError(f"{name}: there is no table {table!r}; {hint}")


def _read(connection: Any, statement: str, name: str, nulls: Sequence[str]) -> Source:
    result = connection.execution_options(stream_results=True).exec_driver_sql(statement)
    if not result.returns_rows:
        raise DataError(f"{name}: the query returns no records; write a SELECT")
    names = check_unique(list(result.keys()), f"{name}: the result")
    columns: dict[str, list[Any]] = {key: [] for key in names}
    for row in result:
        for values, value in zip(columns.values(), row, strict=True):
            values.append(simplify_value(value))
    return open_objects(columns, name, nulls)
