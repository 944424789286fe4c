"""A fit with rules: checked before anything is spent, and derived columns cost nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sundog.cli.main import _run
from sundog.data.schema import Schema
from sundog.errors import BrokenRulesError, DataError
from sundog.fit.plan import plan_charges
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Budget, Ledger
from sundog.release.release import Release

COLUMNS: dict[str, dict[str, Any]] = {
    "school": {"type": "categorical", "values": ["none", "high", "uni"]},
    "years": {"type": "integer", "min": 0, "max": 20},
    "a": {"type": "integer", "min": 0, "max": 9},
    "b": {"type": "integer", "min": 0, "max": 9},
    "sum": {"type": "integer", "min": 0, "max": 18},
}
RULES: list[Any] = [
    {"column": "years", "from": "school", "table": {"none": 0, "high": 12, "uni": 16}},
    "sum = a + b",
    "a <= b",
]


def schema_of(rules: list[Any] = RULES, **rest: Any) -> Schema:
    return Schema.from_dict({"columns": COLUMNS, "rules": rules, **rest})


def frame(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Records that satisfy all rules."""
    rng = np.random.default_rng(seed)
    a, b = np.sort(rng.integers(0, 10, (rows, 2)), axis=1).T
    school = rng.choice(["none", "high", "uni"], rows, p=[0.2, 0.5, 0.3])
    years = pd.Series(school).map({"none": 0, "high": 12, "uni": 16})
    return pd.DataFrame({"school": school, "years": years, "a": a, "b": b, "sum": a + b})


def broken() -> pd.DataFrame:
    """The same with two rules broken."""
    data = frame()
    data.loc[[3, 4, 77], "years"] = 1
    data.loc[100, ["a", "b", "sum"]] = [9, 0, 9]
    return data


def purposes(release: Release) -> list[str]:
    return [charge.purpose for charge in release.certificate.charges]


# --- rules that the data breaks ---


def test_each_broken_rule_is_reported_and_nothing_is_spent(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-6)
    broken().to_csv(tmp_path / "people.csv", index=False)
    synth = Synthesizer("independent", epsilon=1.0, delta=1e-6, ledger=tmp_path / "ledger")
    with pytest.raises(BrokenRulesError) as error:
        synth.fit(tmp_path / "people.csv", schema_of(), out=tmp_path / "o.sundog")
    assert list(error.value.lines) == [
        "people.csv: 3 of 600 rows break the rule `years from school`, the first is row 4; fix the rows, or remove "
        "the rule",
        "people.csv: 1 of 600 rows breaks the rule `a <= b`, row 101; fix the rows, or remove the rule",
    ]
    assert isinstance(error.value, DataError)
    assert "\n" not in str(error.value)
    assert Ledger.open(tmp_path / "ledger").charges == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "people.csv"]


def test_the_command_prints_a_line_for_each_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken().to_csv(tmp_path / "people.csv", index=False)
    schema_of().save(tmp_path / "s.yaml")
    data, schema, out = (str(tmp_path / name) for name in ("people.csv", "s.yaml", "o.sundog"))
    assert _run(["fit", data, "--schema", schema, "--epsilon", "1", "-o", out]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sundog: ")]
    assert [line.partition(" of 600 rows ")[0] for line in lines] == ["sundog: people.csv: 3", "sundog: people.csv: 1"]
    assert not (tmp_path / "o.sundog").exists()


def test_rules_are_checked_although_other_columns_are_to_be_learned(tmp_path: Path) -> None:
    columns = {**COLUMNS, "job": {"type": "categorical", "learn": True}, "b": {**COLUMNS["b"], "bins": "quantiles"}}
    schema = Schema.from_dict({"columns": columns, "rules": RULES})
    jobs = {"job": ["cook", "nurse"] * 300}
    with pytest.raises(BrokenRulesError, match=r"1 of 600 rows breaks the rule `a <= b`, row 101"):
        Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(broken().assign(**jobs), schema)
    release = Synthesizer("independent", epsilon=8.0, delta=1e-5).fit(frame().assign(**jobs), schema).release_
    assert release.verify() == []
    made = release.sample(500, seed=0)
    assert list(made) == list(columns)
    assert (made["sum"] == made["a"] + made["b"]).all()


def test_rows_are_counted_as_they_are_used(tmp_path: Path) -> None:
    """Of each person the first record is used; the rule is broken by a later one of the first, and one that is used."""
    data = pd.concat([frame(100), broken().iloc[[3, 77]]]).assign(person=[*range(100), 0, 100])
    schema = schema_of(unit="person")
    with pytest.raises(BrokenRulesError) as error:
        Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema)
    assert "(first 1 of each 'person'): 1 of 101 rows breaks the rule `years from school`, row 101" in str(error.value)


# --- derived columns ---


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("independent", {}),
        ("rbm", {"settings": {"hidden": 8, "epochs": 1}}),
        ("vae", {"settings": {"hidden": 8, "epochs": 1}}),
        ("gan", {"settings": {"hidden": 8, "epochs": 1}}),
        ("rbm", {"clusters": 2, "settings": {"hidden": 8, "epochs": 1}}),
    ],
    ids=["independent", "rbm", "vae", "gan", "mixture"],
)
def test_every_model_keeps_the_rules(model: str, options: dict[str, Any], tmp_path: Path) -> None:
    synth = Synthesizer(model, epsilon=5.0, delta=1e-6, seed=0, **options)
    synth.fit(frame(), schema_of(records=600), out=tmp_path / "o.sundog")
    release = Release.load(tmp_path / "o.sundog")
    assert release.verify() == []
    assert list(release.schema.columns) == list(COLUMNS)
    for where in ([], ["years >= 12", "sum > 4"]):
        made = release.sample(300, seed=1, where=where)
        assert len(made) == 300
        assert (made["years"] == made["school"].map({"none": 0, "high": 12, "uni": 16})).all()
        assert (made["sum"] == made["a"] + made["b"]).all()
        assert (made["a"] <= made["b"]).all()
        assert made.equals(release.sample(300, seed=1, where=where))
    assert ((made["years"] >= 12) & (made["sum"] > 4)).all()


def test_derived_columns_cost_nothing() -> None:
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame(), schema_of()).release_
    assert purposes(release) == ["marginal of school", "marginal of a", "marginal of b"]
    plan = plan_charges(schema_of(), Budget(1.0, 1e-6), model="independent")
    assert [charge.purpose for charge in plan.charges] == purposes(release)


def test_the_order_of_columns_is_that_of_the_schema() -> None:
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame(), schema_of()).release_
    assert list(release.sample(5)) == list(COLUMNS)


def test_public_data_needs_no_derived_column() -> None:
    public = frame(300, seed=1).drop(columns=["years", "sum"])
    settings = {"hidden": 8, "epochs": 1}
    synth = Synthesizer("gan", epsilon=5.0, delta=1e-6, seed=0, public=public, settings=settings)
    assert synth.fit(frame(), schema_of(records=600)).release_.verify() == []


def test_a_public_source_keeps_its_derived_column_public() -> None:
    columns = {name: {**column, "public": name in ("school", "years")} for name, column in COLUMNS.items()}
    schema = Schema.from_dict({"columns": columns, "rules": RULES})
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame(), schema).release_
    assert release.verify() == []
    assert purposes(release) == ["marginal of a", "marginal of b"]


def test_an_interrupted_fit_goes_on_with_its_rules(tmp_path: Path) -> None:
    out = tmp_path / "o.sundog"
    first = Synthesizer("independent", epsilon=1.0, delta=1e-6)

    def stop(stage: str, _: float) -> None:
        if stage == "saving":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.fit(frame(), schema_of(), out=out, progress=stop)
    again = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame(), schema_of(), out=out, resume=True)
    release = Release.load(out)
    assert release.verify() == []
    assert purposes(release) == ["marginal of school", "marginal of a", "marginal of b"]  # charged once
    made = again.release_.sample(50, seed=0)
    assert made.equals(release.sample(50, seed=0))
    assert (made["a"] <= made["b"]).all()


# --- what the model makes of them ---


def test_the_curator_hears_how_often_the_model_satisfies_the_rules() -> None:
    heard: list[str] = []
    synth = Synthesizer("independent", epsilon=5.0, delta=1e-6)
    synth.fit(frame(), schema_of(), progress=lambda stage, _: heard.append(stage))
    (line,) = (stage for stage in heard if stage.startswith("rules: "))
    assert line.endswith("% of the model's records satisfy them; sampling draws the others again\n")


def test_a_model_that_hardly_ever_satisfies_the_rules_is_warned_of() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 9999, "bins": 8} for name in "ab"}
    same = {"columns": ["a", "b"], "allowed": [[place, place] for place in range(0, 10_000, 50)]}
    data = {"a": np.arange(0, 10_000, 50), "b": np.arange(0, 10_000, 50)}
    with pytest.warns(UserWarning, match=r"only 0\.\d% of the model's records satisfy the rules"):
        Synthesizer("independent", epsilon=5.0, delta=1e-6).fit(data, {"columns": columns, "rules": [same]})
