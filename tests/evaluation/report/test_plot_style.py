"""Colours of plots."""

from __future__ import annotations

import pytest

from sundog.evaluation.report.plot_style import ACCENT, REAL, SYNTHETIC


@pytest.mark.parametrize("colour", [REAL, SYNTHETIC, ACCENT])
def test_colours_of_data_can_be_told_from_both_pages(colour: str) -> None:
    def light(shade: str) -> float:
        parts = [int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    assert light("#fdfcfa") / light(colour) >= 3
    assert light(colour) / light("#17191c") >= 3
