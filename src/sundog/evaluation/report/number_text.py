"""Numbers, shares and intervals as text for a reader."""

from __future__ import annotations

import math

from sundog.evaluation.measure import Measure

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def choose_decimals(*values: float) -> int:
    """Return the number of decimals for about three significant digits of the first non-zero value.

    >>> [choose_decimals(value) for value in (0.7621, 1.0, 34.21, 1234.5, 0.00345)], choose_decimals(0.0, 0.0213)
    ([3, 3, 1, 0, 4], 4)
    """
    for value in values:
        if math.isfinite(value) and value != 0:
            size = math.floor(math.log10(abs(value))) or -1  # 1.000 as 0.999
            return min(max(2 - size, 0), max(1 - size, 4), 8)
    return 3


def format_decimal(value: float, decimals: int) -> str:
    """Return a number as text; a dash for NaN.

    >>> format_decimal(-1234.5, 1), format_decimal(float("nan"), 3)
    ('−1,234.5', '–')
    >>> format_decimal(0.0, 3), format_decimal(-0.0001, 3)
    ('0', '0.000')
    """
    if not math.isfinite(value):
        return "–"
    return "0" if value == 0 else f"{value:z,.{decimals}f}".replace("-", "−")


def format_percent(share: float) -> str:
    """Return a share as a percentage with two significant digits.

    >>> format_percent(0.237), format_percent(0.0364), format_percent(0.0004), format_percent(-0.04)
    ('24%', '3.6%', '0.0%', '−4.0%')
    """
    return f"{share:z.{0 if abs(share) >= 0.0995 else 1}%}".replace("-", "−")


def format_range(measure: Measure) -> str:
    """Return the ends of an interval of shares.

    >>> format_range(Measure(0.5, 0.45, 0.55))
    '45% to 55%'
    """
    return f"{format_percent(measure.low)} to {format_percent(measure.high)}"


def describe_possible(share: Measure) -> str:
    """Return the shares that an interval allows; empty where it allows all.

    >>> describe_possible(Measure(0.9, 0.6, 1.4)), describe_possible(Measure(0.1, -2.0, 0.4))
    ('at least 60%', 'at most 40%')
    >>> describe_possible(Measure(0.5, 0.05, 0.95)), describe_possible(Measure(0.5, -1.0, 2.0))
    ('5.0% to 95%', '')
    """
    if share.low <= 0 or share.high >= 1:
        if share.low > 0:
            return f"at least {format_percent(share.low)}"
        return f"at most {format_percent(share.high)}" if share.high < 1 else ""
    return format_range(share)


def capitalise(words: str) -> str:
    """Return the text with an upper-case first letter."""
    return words[:1].upper() + words[1:]


def format_power(value: float) -> str:
    """Return a small number in scientific notation.

    >>> format_power(1e-6), format_power(2.5e-7), format_power(0.05)
    ('10⁻⁶', '2.5 × 10⁻⁷', '0.05')
    """
    digits, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return digits
    raised = f"10{str(int(exponent)).translate(_RAISED)}"
    return raised if digits == "1" else f"{digits} × {raised}"


def format_interval(measure: Measure, decimals: int) -> str:
    """Return the ends of the interval; empty where they read the same, or the value is undefined.

    >>> format_interval(Measure(0.76, 0.755, 0.769), 3)
    '0.755 to 0.769'
    """
    low, high = format_decimal(measure.low, decimals), format_decimal(measure.high, decimals)
    return "" if low == high or not math.isfinite(measure.value) else f"{low} to {high}"
