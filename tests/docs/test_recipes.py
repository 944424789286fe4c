"""CONTRIBUTING.md is correct: what it names exists, and each recipe works on a copy of the package."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.data.columns.test_column import GradeColumn

import sundog

ROOT = Path(__file__).parents[2]
SOURCE = Path(sundog.__file__).parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = sorted(set(re.findall(r"`([\w./]*(?:/|\.py|\.md)(?::\w+)?\w*)`", PAGE)))


def locate(path: str) -> Path | None:
    """Return the file or folder that the page names, in the repository or in the package."""
    return next((place / path for place in (ROOT, SOURCE) if (place / path).exists()), None)


def find_section(title: str) -> str:
    return PAGE.partition(f"\n{title}\n")[2].partition("\n#")[0]


def find_edited_files(recipe: str) -> set[str]:
    """Return the existing files of the package that a recipe edits."""
    named = re.findall(r"`([\w/]+\.py)`", find_section(recipe))
    return {path for path in named if (SOURCE / path).exists()}


@pytest.mark.parametrize("path", [path for path in PATHS if "NAME" not in path])
def test_what_the_page_names_exists(path: str) -> None:
    file, _, name = path.partition(":")
    place = locate(file)
    assert place is not None
    if name:
        defined = [node.name for node in ast.parse(place.read_text()).body if hasattr(node, "name")]
        assert name in defined


def test_every_folder_is_in_the_layout() -> None:
    folders = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    assert sorted(folders) == sorted(re.findall(r"^\| `(\w+)/` \|", find_section("## The layout"), re.MULTILINE))


# --- the recipes ---


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to be edited."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(SOURCE, tmp_path / "changed" / "sundog", ignore=ignored))


def insert(file: Path, before: str, text: str) -> None:
    """Insert text into a file, before a string that occurs once."""
    content = file.read_text()
    assert content.count(before) == 1, before
    file.write_text(content.replace(before, text + before))


def run(copy: Path, code: str) -> Any:
    """Run a program that imports the copy, and return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=copy.parent.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


COMMAND = '''"""Say hello.

Example: sundog hello
"""

from sundog.cli.console import say


def run() -> None:
    """Greets."""
    say('"hello"')
'''


def test_a_command_is_a_file_and_its_registration(copy: Path) -> None:
    assert find_edited_files("### Add a command") == {"cli/main.py"}
    (copy / "cli" / "hello.py").write_text(COMMAND)
    main = copy / "cli" / "main.py"
    main.write_text(re.sub(r"(from sundog\.cli import \(?\s*)", r"\1hello, ", main.read_text(), count=1))
    main.write_text(re.sub(r"(for command in \(\s*)", r"\1hello, ", main.read_text(), count=1))
    assert run(copy, "from sundog.cli.main import main; main(['hello'])") == "hello"


COLUMN_IMPORTS = """
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sundog.data.columns.arrow import Mask
from sundog.data.columns.forms import Scale
from sundog.data.columns.scalar import ScalarColumn
from sundog.data.columns.containers import to_python, unwrap_one
from sundog.data.validation_errors import format_value

"""

LEARN_GRADES = """
import json, sundog
columns = {"grade": {"type": "grade", "worst": "C"}, "hours": {"type": "integer", "min": 0, "max": 9}}
data = {"grade": ["A", "B", "C"] * 100, "hours": [1, 5, 9] * 100}
schema = sundog.Schema.from_dict({"columns": columns})
release = sundog.Synthesizer("independent", epsilon=5.0, delta=1e-6).fit(data, schema).release_
release.save("grades.sundog")
release = sundog.Release.load("grades.sundog")
made = release.sample(300, seed=0, where="grade<=B")
sundog.evaluate(release, real=data, rows=200).to_html("grades.html")
print(json.dumps(sorted(set(made["grade"]))))
"""


def test_a_column_type_is_a_file_and_its_registration(copy: Path) -> None:
    assert find_edited_files("### Add a column type") == {"data/columns/__init__.py"}
    columns = copy / "data" / "columns"
    (columns / "grade.py").write_text(COLUMN_IMPORTS + inspect.getsource(GradeColumn))
    package = columns / "__init__.py"
    insert(package, "_Column = TypeVar(", "from sundog.data.columns.grade import GradeColumn\n")
    insert(package, "    | SetColumn,\n", "    | GradeColumn\n")
    assert run(copy, LEARN_GRADES) == ["A", "B"]


RULE = '''
from dataclasses import dataclass

import numpy as np

from sundog.data.rules.rule import BoundRule, Rule


class Different(Rule):
    """Two columns of one type never have the same value."""

    different: tuple[str, str]

    def to_dict(self):
        return {"different": list(self.different)}

    def __str__(self):
        return " differs from ".join(self.different)

    def bind(self, domain):
        for name in self.different:
            domain.scalar(name)
        return BoundDifferent(self.different)


@dataclass(frozen=True)
class BoundDifferent(BoundRule):
    names: tuple[str, ...]

    def holds(self, codes):
        first, second = self.names
        return np.asarray(codes[first] != codes[second])
'''

FIT_DIFFERENT = """
import json, sundog
columns = dict.fromkeys(["home", "away"], {"type": "categorical", "values": ["A", "B", "C"]})
data = {"home": ["A", "B", "C"] * 100, "away": ["B", "C", "A"] * 100}
schema = {"columns": columns, "rules": [{"different": ["home", "away"]}]}
sundog.Synthesizer("independent", epsilon=5.0, delta=1e-6).fit(data, schema, out="games.sundog")
release = sundog.Release.load("games.sundog")
made = release.sample(300, seed=0)
report = sundog.evaluate(release, real=data, rows=200)
print(json.dumps([int((made["home"] == made["away"]).sum()), report.measures["rules.broken"].value]))
"""


def test_a_rule_is_a_file_and_its_registration(copy: Path) -> None:
    assert find_edited_files("### Add a rule") == {"data/rules/__init__.py"}
    rules = copy / "data" / "rules"
    (rules / "different.py").write_text(RULE)
    insert(
        rules / "__init__.py",
        "MOST_RULES =",
        "from sundog.data.rules.different import Different\nKINDS += (Different,)\n",
    )
    assert run(copy, FIT_DIFFERENT) == [0, 0.0]


CONFIGURATION = '''
from typing import ClassVar

from pydantic import Field

from sundog.models.configuration import Configuration


class FirstConfiguration(Configuration):
    """The histogram of the first column; the others are uniform."""

    name: ClassVar[str] = "first"
    counts_records: ClassVar[bool] = False

    smoothing: float = Field(default=1.0, ge=0, le=100, description="added to each count")
'''

MODEL = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sundog.models.protocol import State
from sundog.models.first.released import PURPOSE, ReleasedFirst
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import compute_histogram_charge, noisy_histogram


@dataclass(frozen=True)
class FirstPlan:
    sigma: float
    smoothing: float

    @property
    def charges(self) -> tuple[Charge, ...]:
        return (compute_histogram_charge(sigma=self.sigma, purpose=PURPOSE, touched=1, contribution=1),)


class First:
    name: ClassVar[str] = "first"

    def __init__(self, schema, chances):
        self.schema, self.chances = schema, chances

    @classmethod
    def plan(cls, schema, budget, configuration, *, already, records):
        def all_charges(sigma):
            return [*already, *FirstPlan(sigma, configuration.smoothing).charges]

        sigma = find_smallest_noise(all_charges, epsilon=budget.epsilon, delta=budget.delta)
        return FirstPlan(sigma, configuration.smoothing)

    @classmethod
    def fit(cls, records, plan, ledger, context):
        name, column = next(iter(records.schema.columns.items()))
        counts = np.bincount(records.codes[name], minlength=column.lattice_size)

        def measure(ledger):
            return {"counts": noisy_histogram(counts, sigma=plan.sigma, ledger=ledger, purpose=PURPOSE)}

        noisy = measure_once(PURPOSE, plan.charges, measure, ledger, context.checkpoint)["counts"]
        positive = np.maximum(noisy + plan.smoothing, 1e-9)
        return cls(records.schema, positive / positive.sum())

    def sample(self, n, rng, where):
        first, *others = self.schema.columns.items()
        codes = {first[0]: rng.choice(len(self.chances), n, p=self.chances).astype(first[1].dtype)}
        for name, column in others:
            codes[name] = rng.integers(0, column.lattice_size, n).astype(column.dtype)
        return codes

    def state(self):
        return State({"chances": self.chances}, {})

    @classmethod
    def from_state(cls, schema, state):
        ReleasedFirst(schema, state)
        return cls(schema, state.tensors["chances"])
"""

RELEASED = """
from typing import ClassVar

from sundog.models.released import ReleasedModel, check_shapes, find_missing_charges

PURPOSE = "first column"


class ReleasedFirst(ReleasedModel):
    counts_records: ClassVar[bool] = False
    records = None

    def __init__(self, schema, state):
        column = next(iter(schema.columns.values()))
        check_shapes("first", state, {"chances": (column.lattice_size,)})

    def find_unpaid(self, charges):
        return find_missing_charges(charges, {PURPOSE: "discrete_gaussian"})
"""

FIT_FIRST = """
import json, sundog
from sundog.cli.main import _run
columns = {"smokes": {"type": "boolean"}, "hours": {"type": "integer", "min": 0, "max": 9}}
data = {"smokes": [True, False, False] * 100, "hours": [1, 5, 9] * 100}
synth = sundog.Synthesizer("first", epsilon=5.0, delta=1e-6, settings={"smoothing": 0.5})
synth.fit(data, {"columns": columns}, out="first.sundog")
release = sundog.Release.load("first.sundog")
problems = release.verify()
made = release.sample(300, seed=0)
sundog.evaluate(release, real=data, rows=200).to_html("first.html")
commands = ["models first", "verify first.sundog", "sample first.sundog -n 9 -o made.csv"]
codes = [_run(command.split()) for command in commands]
print(json.dumps([problems, float(made["smokes"].mean()), codes]))
"""


def test_a_model_is_a_folder_and_its_registration(copy: Path) -> None:
    assert find_edited_files("### Add a model") == {"models/registry.py"}
    folder = copy / "models" / "first"
    folder.mkdir()
    for name, code in {"__init__": "", "configuration": CONFIGURATION, "first": MODEL, "released": RELEASED}.items():
        (folder / f"{name}.py").write_text(code)
    registration = '    "first": _locate("sundog.models.first", "First"),\n'
    insert(copy / "models" / "registry.py", "    MIXTURE: _locate(", registration)
    problems, share, codes = run(copy, FIT_FIRST)
    assert problems == []
    assert 0.2 < share < 0.5
    assert codes == [0, 3, 0]  # 3: valid, but not signed
