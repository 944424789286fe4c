"""Every error a user can cause, each one line that names the place and the fix.

The command line prints the message alone and exits with code 2; a library user can catch `SundogError`.
"""

from __future__ import annotations

from sundog.untrusted_text import escape_unprintable


class SundogError(Exception):
    r"""Something the user can put right; the message is one line.

    It may quote what strangers wrote, so whatever a terminal would not print is escaped.

    >>> str(SundogError("column 'a\x1b[2J': is no name"))
    "column 'a\\x1b[2J': is no name"
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(escape_unprintable(str(message)))


class ArgumentError(SundogError, ValueError):
    """An argument is not one that can be meant."""


class NotFittedError(SundogError, ValueError, AttributeError):
    """Something was asked for that only a fit leaves; `hasattr` is False, as for scikit-learn's error of that name."""


class DataError(SundogError):
    """The data does not fit the schema, or the file cannot be read."""


class SchemaError(SundogError):
    """The schema is malformed or contradicts itself."""


class BudgetExceededError(SundogError):
    """A spend was refused, before anything was measured."""


class BudgetError(BudgetExceededError, ArgumentError):
    """An ε or a δ that no budget can have."""


class LedgerError(SundogError):
    """A ledger file is missing, damaged or does not match."""


class ReleaseError(SundogError):
    """A release file is malformed, truncated, hostile or of another version."""
