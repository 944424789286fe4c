"""Checks of the lines of a csv file: every record must be one line, so that no line changes how another is read.

A quote left open would swallow the lines after it, up to the next quote in another record. That cannot be
distinguished from a field with line breaks, so both are refused, with one exception: a declared value with a line
break may stand in quotes. See "A record is encoded alone" in docs/privacy.md for why this is enough.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from sundog.errors import DataError

BOM = b"\xef\xbb\xbf"
_QUOTE, _BREAK, _RETURN = b'"\n\r'


def check_lines(file: BinaryIO, name: str, delimiter: str, multiline: Sequence[str] = ()) -> Any:
    r"""Return the file for a csv parser; reading it raises DataError at a line that could affect other lines.

    Args:
        file: the decompressed csv file.
        name: the name of the file, for messages.
        delimiter: one ASCII character.
        multiline: declared values that contain line breaks.

    >>> check_lines(io.BytesIO(b'n,s\n1,"a, b"\n'), "t.csv", ",").read()
    b'n,s\n1,"a, b"\n'
    >>> check_lines(io.BytesIO(b'n,s\n1,"a\n2,b\n'), "t.csv", ",").read()
    Traceback (most recent call last):
    sundog.errors.DataError: t.csv: line 2 leaves a quote open; write each record on one line, and double inner quotes
    """
    if not multiline:
        return CheckedLines(file, name, delimiter)
    data = file.read()
    CheckedLines(io.BytesIO(_mask_multiline(data, name, delimiter, multiline)), name, delimiter, strict=True).read()
    return io.BytesIO(data)


class CheckedLines:
    """A file that passes on the bytes it reads, and raises DataError at the first line that could affect other lines.

    Fields in quotes, with quotes inside doubled, and fields without quotes are allowed. A quote inside a field that
    does not begin with one (an inch mark) is allowed if no value may contain line breaks.
    """

    closed = False

    def __init__(self, file: BinaryIO, name: str, delimiter: str, *, strict: bool = False) -> None:
        self._file = file
        self._name = name
        self._before, self._after = np.zeros((2, 256), bool)  # bytes allowed around an opening or closing quote
        self._before[[ord(delimiter), _BREAK, _QUOTE]] = self._after[[ord(delimiter), _BREAK, _RETURN, _QUOTE]] = True
        mark = re.escape(delimiter).encode()
        unquoted = rb'[^"%b]*' % mark if strict else rb'(?:[^"%b][^%b]*)?' % (mark, mark)
        field = rb'(?:"(?:[^"]|"")*"|%b)' % unquoted
        self._line_of_fields = re.compile(rb"%b(?:%b%b)*" % (field, mark, field))
        self._lines = 0  # checked so far
        self._rest = b""  # the beginning of the next line

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, after checking all lines that they complete."""
        data = self._file.read(size)
        found = self._rest + data
        end = found.rfind(b"\n") + 1 if data and size >= 0 else len(found)
        start = len(BOM) if not self._lines and found.startswith(BOM) else 0
        self._check(found[start:end])
        self._rest = found[end:]
        return data

    def close(self) -> None:
        """Do nothing: the opener of the file closes it."""

    def _check(self, lines: bytes) -> None:
        if b"\0" in lines:
            at = lines.count(b"\n", 0, lines.index(b"\0"))
            raise self._build_error(at, "contains a zero byte; save the file as csv in UTF-8")
        if lines.count(b"\r") != lines.count(b"\r\n"):
            at = lines.count(b"\n", 0, next(re.finditer(rb"\r(?!\n)", lines)).start())
            raise self._build_error(at, "contains a carriage return; remove it, and end lines with \\n or \\r\\n")
        for at, line in self._find_suspects(lines) if b'"' in lines else ():
            if not self._line_of_fields.fullmatch(line):
                raise self._build_error(
                    at,
                    f"{_describe_problem(line)}; write each record on one line, and double inner quotes",
                )
        self._lines += lines.count(b"\n")

    def _find_suspects(self, lines: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with a quote that is unpaired, or neither at an end of a field nor doubled."""
        text = np.frombuffer(lines + b"\n", np.uint8)
        quotes, breaks = np.flatnonzero(text == _QUOTE), np.flatnonzero(text == _BREAK)
        upto = np.searchsorted(quotes, breaks)
        unpaired = np.flatnonzero(np.diff(upto, prepend=0) % 2)
        # If no line leaves a quote open, every other quote opens. Index -1 is the line break at the end.
        opens, closes = (quotes[::2], quotes[1::2]) if not len(unpaired) else (quotes, quotes)
        misplaced = np.concatenate([opens[~self._before[text[opens - 1]]], closes[~self._after[text[closes + 1]]]])
        for line in np.union1d(unpaired, np.searchsorted(breaks, misplaced)):
            start = breaks[line - 1] + 1 if line else 0
            yield int(line), lines[start : breaks[line]].removesuffix(b"\r")

    def _build_error(self, line: int, problem: str) -> DataError:
        return DataError(f"{self._name}: line {self._lines + line + 1} {problem}")


def _describe_problem(line: bytes) -> str:
    return "leaves a quote open" if line.count(b'"') % 2 else "has a quote that neither begins nor ends its field"


def _mask_multiline(data: bytes, name: str, delimiter: str, multiline: Sequence[str]) -> bytes:
    """Return the file with a short text in place of each declared value with line breaks, to be checked as lines."""
    mark = re.escape(delimiter).encode()
    end = rb"(?=%b|\r?\n|\r?\Z)" % mark
    texts = sorted({text.replace('"', '""').encode() + b'"' for text in multiline}, key=len, reverse=True)
    fields = b"|".join(b'"' + re.escape(text) for text in texts)
    masked = re.sub(rb"(?m)(?:^|(?<=%b))(?:%b)%b" % (mark, fields, end), b'"x"', data)
    # A line that begins like the end of such a value could complete the open quote of the line before it.
    tails = b"|".join(re.escape(text.rpartition(b"\n")[2]) for text in texts if b"\n" in text)
    if tails and (found := re.search(rb"(?m)^(?:%b)%b" % (tails, end), masked)):
        line = masked.count(b"\n", 0, found.start()) + 1
        raise DataError(f"{name}: line {line} could belong to a value with a line break; give the data as parquet")
    return masked
