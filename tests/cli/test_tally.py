"""`sundog tally plan`: both modes, for people and for machines, and one line for bad input."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.cli.calling import Sundog

PLAN = ("tally", "plan", "--users", "1000000", "--cells", "245000", "--epsilon", "1")


def test_the_plan_says_what_groups_cost(sundog: Sundog) -> None:
    called = sundog(*PLAN, "--group-size", "500")
    assert called.code == 0
    assert called.err == ""
    for part in ("18 × 272 = 4,896", "peers", "keepers", "19,584", "× 44.7"):
        assert part in called.out


def test_the_plan_for_machines(sundog: Sundog) -> None:
    plan = sundog(*PLAN, "--items", "1275", "--largest", "17", "--squares", "131500", "--delta", "1e-7", "--json").json
    assert plan["delta"] == 1e-7
    assert plan["contribution"] == {"l1": 22_950, "largest": 17, "l2_squared": 131_500}
    assert [mode["mode"] for mode in plan["modes"]] == ["peers", "keepers"]
    assert plan["modes"][0]["excess_epsilon"] == pytest.approx(0.06, abs=0.02)


def test_a_histogram_can_be_asked_for(sundog: Sundog) -> None:
    assert sundog(*PLAN, "--no-sketch", "--json").json["sketch"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--users", "2"), "users must be between 3 and"),
        (("--epsilon", "0"), "epsilon must be"),
        (("--epsilon", "50"), "epsilon of a sum must be at most 30"),
        (("--delta", "0.5"), "delta = 0.5 promises nothing"),
        (("--items", "300000"), "a person cannot add to 300,000 of 245,000 cells"),
        (("--largest", "19"), "the largest change of a cell is between 1"),
        (("--dropout", "1.5"), "dropout is a part of the users"),
        (("--sketch-error", "2"), "a sketch is for one key or more"),
    ],
)
def test_bad_input_is_one_line(options: tuple[str, ...], said: str, sundog: Sundog) -> None:
    called = sundog(*PLAN, *options)
    assert called.code == 2
    assert called.out == ""
    assert len(called.err.splitlines()) == 1
    assert said in called.err


def test_help_lists_the_commands_of_the_group(sundog: Sundog) -> None:
    assert "plan" in sundog("tally", "--help").out
    called = sundog("tally", "plan", "--help")
    assert called.code == 0
    assert "Example: sundog tally plan" in called.out


def test_the_help_of_the_program_does_without_the_tally() -> None:
    program = "from sundog.cli.main import _run; import sys; _run(['--help']); sys.exit('sundog.tally' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0
