"""Errors that a user can cause: one line each, with the place and the fix.

The command line prints the message alone and exits with code 2; a library user can catch `SundogError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sundog.untrusted_text import escape_unprintable


class SundogError(Exception):
    r"""An error that the user can fix; the message is one line.

    It may quote untrusted text, so unprintable characters are escaped.

    >>> str(SundogError("column 'a\x1b[2J': is not a name"))
    "column 'a\\x1b[2J': is not a name"
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(escape_unprintable(str(message)))

    @property
    def lines(self) -> Sequence[str]:
        """The message in lines, for a terminal."""
        return [str(self)]


class ArgumentError(SundogError, ValueError):
    """An argument has an impossible value or type."""


class NotFittedError(SundogError, ValueError, AttributeError):
    """The attribute exists only after a fit; `hasattr` is False, as with scikit-learn's error of the same name."""


class DataError(SundogError):
    """The data does not fit the schema, or the file cannot be read."""


class BrokenRulesError(DataError):
    """Records break rules of the schema; there is a line for each rule."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self._lines = [escape_unprintable(line) for line in lines]

    @property
    def lines(self) -> Sequence[str]:
        """A line for each rule."""
        return self._lines


class SchemaError(SundogError):
    """The schema is malformed or contradicts itself."""


class BudgetExceededError(SundogError):
    """A charge was refused, before anything was measured."""


class BudgetError(BudgetExceededError, ArgumentError):
    """An ε or δ is out of range."""


class LedgerError(SundogError):
    """A ledger file is missing or damaged, or does not match."""


class NotApplicableError(SundogError):
    """An audit has no place in what is audited: there is nothing that it could look at."""


class ReleaseError(SundogError):
    """A release file is malformed, truncated, hostile or of another version."""


class TallyError(SundogError):
    """A message of the tally is malformed, forged, late or of another round, or its round cannot go on."""
