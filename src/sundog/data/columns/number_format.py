"""The format of numbers in a file, declared by an example: "1,234.5", "1.234,5", "$1,234.50", "12%".

An example that ends in a decimal 0 fixes the number of decimals: with "$1,234.50", 7 is written "$7.00", not "$7".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns.arrow import is_text

SPACES = " \u00a0\u202f"
THOUSANDS = ",.'’" + SPACES
_EXAMPLE = re.compile(r"(?P<prefix>[^\d+-]*)(?P<number>\d(?:.*\d)?)(?P<suffix>[^\d+-]*)", re.DOTALL)
_NO_NUMBER = "?"  # replaces a text in another format, so that the parser of plain numbers refuses it


@dataclass(frozen=True)
class NumberFormat:
    """Thousands separator, decimal mark, prefix and suffix of a number; a text may omit each of them.

    >>> NumberFormat.of("$1,234.50")
    NumberFormat(thousands=',', decimal='.', prefix='$', suffix='', decimals=2)
    >>> NumberFormat.of("1 234"), NumberFormat.of("1,5")
    (NumberFormat(thousands=' ', decimal='.', prefix='', suffix='', decimals=0),
     NumberFormat(thousands='', decimal=',', prefix='', suffix='', decimals=0))
    >>> NumberFormat.of("1.234,5 €").to_plain(pa.array(["12.345,67 €", "7", "1.23"])).to_pylist()
    ['12345.67', '7', '?']
    """

    thousands: str = ""
    decimal: str = "."
    prefix: str = ""
    suffix: str = ""
    decimals: int = 0  # at least

    @classmethod
    def of(cls, example: str) -> NumberFormat:
        """Return the format of an example; a single mark before exactly three last digits separates thousands."""
        found = _EXAMPLE.fullmatch(example.strip())
        marks = re.findall(r"\D", found["number"]) if found else []
        if not found or len(set(marks)) > 2:
            raise ValueError("is not an example of a number")
        thousands, decimal = "", "."
        if len(set(marks)) == 2 or (marks and re.fullmatch(r"\d{1,3}(\D\d{3})+", found["number"])):
            thousands = marks[0]
        if marks and marks[-1] != thousands:
            decimal = marks[-1]
        elif thousands == ".":
            decimal = ","
        rest = found["number"].partition(decimal)[2] if decimal in marks else ""
        decimals = len(rest) if rest.endswith("0") else 0
        made = cls(thousands, decimal, found["prefix"].strip(), found["suffix"].strip(), decimals)
        if thousands not in THOUSANDS or decimal not in ".," or thousands == decimal or not made._fits(example):
            raise ValueError("is not an example of a number")
        return made

    def make_example(self, *, whole: bool) -> str:
        """Return a number in this format, as an example.

        >>> NumberFormat.of("$1,234.5").make_example(whole=True), NumberFormat.of("12%").make_example(whole=False)
        ('$1,234', '12.5%')
        >>> NumberFormat(decimals=2).make_example(whole=False)
        '12.50'
        """
        number = "1234" if self.thousands or self.decimals == 3 else "12"  # 12.500 would show thousands
        if self.decimals == 1:
            return self._spell(number)
        return self._spell(number if whole else f"{number}.5")

    @property
    def pattern(self) -> str:
        """The regular expression of a text in this format, without surrounding white space."""
        grouped = f"[0-9]{{1,3}}(?:{self.separator}[0-9]{{3}})+|" if self.thousands else ""
        before = f"(?:{re.escape(self.prefix)}[{SPACES}]*)?" if self.prefix else ""
        behind = f"(?:[{SPACES}]*{re.escape(self.suffix)})?" if self.suffix else ""
        return f"^([-+]?){before}([-+]?)({grouped}[0-9]+)({re.escape(self.decimal)}[0-9]*)?{behind}$"

    def to_plain(self, values: Any) -> Any:
        """Return the texts of an Arrow array as plain numbers, each converted alone; typed values unchanged."""
        if not is_text(values.type) or self == NumberFormat(decimals=self.decimals):
            return values
        texts = pc.utf8_trim_whitespace(values)
        fits = pc.match_substring_regex(texts, self.pattern)
        whole = pc.replace_substring_regex(texts, self.pattern, r"\1\2\3")
        if self.thousands:
            whole = pc.replace_substring_regex(whole, self.separator, "")
        rest = pc.replace_substring(pc.replace_substring_regex(texts, self.pattern, r"\4"), self.decimal, ".")
        nothing = pa.scalar("", texts.type)  # Arrow joins texts of one type only
        return pc.if_else(fits, pc.binary_join_element_wise(whole, rest, nothing), pa.scalar(_NO_NUMBER, texts.type))

    def spell(self, texts: Any) -> Any:
        """Return the plain numbers of an Arrow array as texts in this format.

        >>> NumberFormat.of("$1,234.5").spell(pa.array(["-1234567.5", "7", None])).to_pylist()
        ['-$1,234,567.5', '$7', None]
        """
        distinct = texts.dictionary_encode()
        spelled = [None if text is None else self._spell(text) for text in distinct.dictionary.to_pylist()]
        return pa.array(spelled, texts.type).take(distinct.indices)

    @property
    def separator(self) -> str:
        """A regular expression for the thousands separator; all kinds of space are equivalent."""
        return f"[{SPACES}]" if self.thousands in SPACES else re.escape(self.thousands)

    def _fits(self, text: str) -> bool:
        return re.match(self.pattern, text.strip()) is not None

    def _spell(self, text: str) -> str:
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        if "e" in digits:  # how very large and very small floats are printed
            digits = f"{float(digits):f}"
        whole, _, rest = digits.partition(".")
        grouped = f"{int(whole):,}".replace(",", self.thousands)
        space = " " if self.suffix[:1].isalpha() else ""
        before = f"{self.prefix} " if self.prefix[-1:].isalpha() else self.prefix
        rest = rest.ljust(self.decimals, "0")
        return f"{sign}{before}{grouped}{self.decimal if rest else ''}{rest}{space}{self.suffix}"
