"""The front door: what it takes, what it refuses, what it warns of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.contracts.material import same_samples

from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 0, "max": 99},
    "sex": {"type": "categorical", "values": ["f", "m"]},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})
FRAME = pd.DataFrame({"age": [31, 47, 25, 62] * 25, "sex": ["f", "m"] * 50})
SETS = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 4, "max_size": 2}}})
BASKETS = [[0, 1], [2], []] * 30


def fit(data: Any = FRAME, schema: Schema = SCHEMA, *, labels: Any = None, **options: Any) -> Release:
    return (
        Synthesizer(**{"model": "independent", "epsilon": 1.0, "delta": 1e-6, **options})
        .fit(data, schema, labels=labels)
        .release_
    )


# --- what it takes ---


def test_frames_paths_and_dicts_are_the_same_to_it(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_parquet(tmp_path / "a.parquet")
    sources: list[Any] = [FRAME, tmp_path / "a.csv", str(tmp_path / "a.parquet"), FRAME.to_dict("list")]
    samples = [fit(source, noise=NoiseSource.seeded(1)).sample(20, seed=0) for source in sources]
    assert all(same_samples(samples[0], other) for other in samples[1:])


def test_images_with_labels_beside_them(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "columns": {
                "image": {"type": "image", "shape": [2, 2], "levels": 4},
                "digit": {"type": "integer", "min": 0, "max": 9},
            }
        }
    )
    images, labels = np.zeros((40, 2, 2), np.uint8), np.arange(40) % 10
    release = fit(images, schema, labels=labels)
    sample = release.sample(5, where={"digit": 3}, as_="arrays")
    assert sample["image"].shape == (5, 2, 2)
    assert sample["digit"].to_pylist() == [3] * 5


def test_series_and_sets() -> None:
    series = Schema.from_dict({"columns": {"load": {"type": "series", "length": 3, "min": 0, "max": 1}}})
    assert fit(np.full((30, 3), 0.5), series).sample(4, as_="arrays")["load"].shape == (4, 3)
    sets = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 4, "max_size": 2}}})
    for source in ([[0, 1], [2], []] * 10, sparse.csr_array(np.eye(4, dtype=np.uint8))):
        assert fit(source, sets).sample(4, as_="arrays")["basket"].shape == (4, 4)


def test_fit_gives_back_the_synthesizer() -> None:
    synthesizer = Synthesizer("independent", epsilon=1.0, delta=1e-6)
    assert synthesizer.fit(FRAME, SCHEMA) is synthesizer


def test_auto_goes_by_the_schema() -> None:
    quick = {"epochs": 1, "hidden": 4}
    assert fit(model="auto").model.name == "marginals"
    assert fit(model="auto", clusters=2).model.name == "mixture"
    assert fit(BASKETS, SETS, model="auto", settings=quick).model.name == "rbm"
    series = Schema.from_dict({"columns": {"load": {"type": "series", "length": 3, "min": 0, "max": 1}}})
    assert fit(np.full((300, 3), 0.5), series, model="auto", settings=quick).model.name == "gan"


def test_auto_goes_by_about_how_many_records_there_are() -> None:
    assert fit(BASKETS, SETS, model="auto").model.name == "independent"
    declared = SETS.model_copy(update={"records": len(BASKETS)})
    assert fit(BASKETS, declared, model="auto").model.name == "independent"


def test_settings_of_auto_are_those_of_what_it_takes() -> None:
    with pytest.raises(SundogError, match=r"^model 'marginals' has no setting 'anchor'; its settings: "):
        fit(model="auto", settings={"anchor": 1.0})


def test_a_second_fit_measures_anew() -> None:
    synthesizer = Synthesizer("independent", epsilon=1.0, delta=1e-6, seed=3)
    first = synthesizer.fit(FRAME, SCHEMA).release_
    second = synthesizer.fit(FRAME, SCHEMA).release_
    assert first.hash != second.hash  # the seed never fixes privacy noise


def test_the_noise_of_tests_is_repeatable_and_marked() -> None:
    first, second = (fit(noise=NoiseSource.seeded(7)) for _ in range(2))
    assert same_samples(first.sample(50, seed=1), second.sample(50, seed=1))
    assert not first.certificate.private
    assert first.verify() != []


# --- what it refuses, before it reads anything ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "nonsense"}, "there is no model 'nonsense'"),
        ({"model": ""}, "there is no model"),
        ({"clusters": -1}, "clusters must be"),
        ({"public": FRAME}, "does not use public"),
        ({"device": "cuda"}, "does not use device"),
        ({"settings": {"depth": 3}}, "has no setting 'depth'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_the_model_does_not_know_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SundogError, match=said):
        fit("no such file.csv", **options)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_epsilon_is_refused(epsilon: float, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError, match="epsilon"):
        Synthesizer("independent", epsilon=epsilon, ledger=tmp_path / "l").fit(FRAME, SCHEMA, out=tmp_path / "o.sundog")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delta", [0.0, -1e-6, float("nan")])
def test_an_impossible_delta_is_refused(delta: float, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError, match="delta"):
        Synthesizer("independent", epsilon=1.0, delta=delta, ledger=tmp_path / "l").fit(
            FRAME, SCHEMA, out=tmp_path / "o.sundog"
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delta", [1.0, 2.0])
def test_a_delta_of_one_or_more_is_refused_without_a_warning(delta: float) -> None:
    with pytest.raises(BudgetExceededError, match="delta"):  # a warning would be an error here
        fit(delta=delta)


@pytest.mark.parametrize("place", ["folder", "missing/o.sundog"])
def test_a_place_where_no_release_can_be_is_refused_before_anything_is_spent(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-5)
    with pytest.raises(SundogError, match=place):
        Synthesizer("independent", epsilon=1.0, ledger=tmp_path / "l").fit(FRAME, SCHEMA, out=tmp_path / place)
    assert Ledger.open(tmp_path / "l").charges == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "l"]


@pytest.mark.parametrize("data", [42, None, object(), lambda: None], ids=["number", "none", "object", "function"])
def test_what_is_no_data_is_refused(data: Any) -> None:
    with pytest.raises(DataError):
        fit(data)


def test_a_column_may_have_any_name(tmp_path: Path) -> None:
    names = ["__metadata__", "a/b", "Straße 🚲", " ", "x" * 500, "..", "None"]
    schema = Schema.from_dict({"columns": dict.fromkeys(names, {"type": "boolean"})})  # noqa: RUF024
    data = {name: [True, False, True] for name in names}
    Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema, out=tmp_path / "o.sundog")
    sample = Release.load(tmp_path / "o.sundog").sample(3)
    assert list(sample) == names


# --- what it warns of ---


def test_an_unreviewed_schema_warns_and_is_written_on_the_certificate() -> None:
    draft = Schema.from_dict({"reviewed": False, "columns": COLUMNS})
    with pytest.warns(UserWarning, match="not reviewed") as caught:
        release = fit(schema=draft)
    assert caught[0].filename == __file__  # at the caller's line
    assert any("NOT REVIEWED" in line for line in release.certificate.assumed_public)


@pytest.mark.parametrize("delta", [1.1e-5, 1e-3, 0.01])
def test_a_large_delta_warns(delta: float) -> None:
    with pytest.warns(UserWarning, match=r"delta = .* is large") as caught:
        release = fit(delta=delta)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # at the caller's line
    assert release.certificate.delta == delta


def test_it_warns_of_the_delta_that_is_used(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "l", epsilon=3.0, delta=1e-3)
    synthesizer = Synthesizer("independent", epsilon=1.0, ledger=tmp_path / "l")
    assert synthesizer.fit(FRAME, SCHEMA).release_.certificate.delta <= 1e-5  # and does not warn of the ledger's
    with pytest.warns(UserWarning, match=r"delta = 0\.001 is large"):
        Synthesizer("independent", epsilon=1.0, delta=1e-3, ledger=tmp_path / "l").fit(FRAME, SCHEMA)


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_a_usual_delta_does_not_warn(delta: float) -> None:
    assert fit(delta=delta).certificate.delta == delta  # a warning would be an error here


# --- guarantees for people who own several records ---


def test_a_unit_is_named_on_the_certificate_and_not_synthesised() -> None:
    schema = Schema.from_dict({"unit": "person", "cap": 2, "columns": COLUMNS})
    many = pd.concat([FRAME] * 40, ignore_index=True)
    release = fit(many.assign(person=np.arange(4000) // 4), schema)
    assert "one person (at most 2 records of each were used)" in str(release.certificate)
    assert list(release.sample(3)) == ["age", "sex"]
    assert release.records is not None
    assert 1600 < release.records < 2400  # 1,000 people with 2 of their 4 records each, and noise
    with pytest.raises(DataError, match="'person' is missing"):
        fit(FRAME, schema)
