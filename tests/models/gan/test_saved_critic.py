"""The critic stays with the curator: a file of its own, for the owner's eyes, that the release knows nothing of."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from tests.contracts.material import decode_records, random_records, schema_of
from tests.models.gan.material import DELTA, GAPS, IMAGES, LABEL, QUICK, TABLE, fit_gan

from sundog.errors import DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import saved_critic as module
from sundog.models.gan.gan import Gan
from sundog.models.gan.saved_critic import Critic
from sundog.models.protocol import State
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.curator_file import get_curator_path, load_curator_file, save_curator_file
from sundog.release.release import Release
from sundog.training.trainer import Trainer

TWINS = schema_of({"label": LABEL, "twin": LABEL})
SCHEMAS = {"mlp": TABLE, "conv": IMAGES, "lstm": GAPS, "pairs": TWINS}
SHAPES = pytest.mark.parametrize("shape", SCHEMAS)


pytestmark = pytest.mark.usefixtures("quick")


@cache
def model_of(shape: str) -> Gan:
    condition = None if shape == "pairs" else "label"
    return fit_gan(random_records(SCHEMAS[shape], 60), shape=shape, condition=condition)


def parts_of(shape: str) -> State:
    private = model_of(shape).private
    assert private is not None
    return private


def fit(out: Path | None, model: str = "gan", *, resume: bool = False, overwrite: bool = False) -> Synthesizer:
    data = decode_records(random_records(TABLE, 60))
    settings = QUICK if model == "gan" else {}
    noise = NoiseSource.seeded(1)
    synthesizer = Synthesizer(model, epsilon=2.0, delta=DELTA, seed=4, noise=noise, settings=settings)
    return synthesizer.fit(data, TABLE, out=out, resume=resume, overwrite=overwrite)


# --- where it is, and where it is not ---


def test_the_critic_is_beside_the_release_and_not_in_it(tmp_path: Path) -> None:
    out, umask = tmp_path / "o.sundog", os.umask(0)
    try:
        parts = fit(out).private_
    finally:
        os.umask(umask)
    assert parts is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.sundog", "o.sundog.private"]
    assert stat.S_IMODE(get_curator_path(out).stat().st_mode) == 0o600
    name, schema, kept = load_curator_file(get_curator_path(out))
    assert (name, schema, kept.config) == ("gan", TABLE, parts.config)
    assert set(kept.tensors) == set(parts.tensors)
    with zipfile.ZipFile(out) as archive:
        entries = [archive.read(entry) for entry in archive.namelist()]
    released = Release.load(out).model.state().tensors
    assert any(tensor.tobytes() in entry for tensor in released.values() for entry in entries)
    for key, tensor in parts.tensors.items():
        assert np.array_equal(tensor, kept.tensors[key])
        assert not any(tensor.tobytes() in entry for entry in entries), key
        assert not any(tensor.shape == other.shape and np.array_equal(tensor, other) for other in released.values())
    assert getattr(Release.load(out).model, "private", None) is None


def test_without_a_place_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fit(None).private_ is not None
    assert list(tmp_path.iterdir()) == []


def test_other_models_have_none(tmp_path: Path) -> None:
    assert fit(tmp_path / "o.sundog", "independent").private_ is None
    assert [path.name for path in tmp_path.iterdir()] == ["o.sundog"]


def test_the_critic_of_an_earlier_release_does_not_stay_beside_another_one(tmp_path: Path) -> None:
    fit(tmp_path / "o.sundog")
    fit(tmp_path / "o.sundog", "independent", overwrite=True)
    assert not get_curator_path(tmp_path / "o.sundog").exists()


@pytest.mark.parametrize("when", ["training", "saving"])
def test_it_survives_an_interruption(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit(tmp_path / "whole.sundog").private_
    assert whole is not None

    def stop(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if when == "training":
            patch.setattr(Trainer, "run", stop)
        else:
            patch.setattr(Release, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "o.sundog")
    assert get_curator_path(tmp_path / "o.sundog").exists() is (when == "saving")  # it is there before the release
    assert not (tmp_path / "o.sundog").exists()
    again = fit(tmp_path / "o.sundog", resume=True).private_
    _, _, kept = load_curator_file(get_curator_path(tmp_path / "o.sundog"))
    assert again is not None
    for parts in (again, kept):
        assert parts.config == whole.config
        assert all(np.array_equal(parts.tensors[name], tensor) for name, tensor in whole.tensors.items())


@pytest.mark.parametrize("model", ["gan", "independent"])
@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_a_path_that_is_no_file_is_refused_before_anything_is_spent(
    what: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "o.sundog"
    (os.mkdir if what == "folder" else os.mkfifo)(get_curator_path(out))
    monkeypatch.setattr(Ledger, "spend", lambda *_: pytest.fail("something was spent"))
    with pytest.raises(DataError, match=r"o\.sundog\.private: is (a directory|not a regular file)"):
        fit(out, model)
    assert [path.name for path in tmp_path.iterdir()] == ["o.sundog.private"]


@pytest.mark.parametrize("model", ["gan", "independent"])
def test_a_crash_leaves_no_new_release_beside_an_old_critic(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, save = tmp_path / "o.sundog", Release.save
    fit(out)
    out.unlink()  # and its critic stays

    def seen(release: Release, path: Path) -> None:
        assert not path.exists()
        assert get_curator_path(out).exists() is (model == "gan")
        if model == "gan":
            load_curator_file(get_curator_path(out))
        save(release, path)

    monkeypatch.setattr(Release, "save", seen)
    fit(out, model, overwrite=True)
    assert out.exists()


# --- reading it ---


def check_refusal(path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_curator_file(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def saved(path: Path, about: Any, **metadata: str) -> Path:
    text = about if isinstance(about, str) else json.dumps(about)
    path.write_bytes(safetensors.numpy.save({"a": np.zeros(2, np.float32)}, metadata={"about": text, **metadata}))
    return path


def test_a_file_that_was_cut_or_changed_is_refused(tmp_path: Path) -> None:
    save_curator_file(tmp_path / "whole", "gan", TWINS, parts_of("pairs"))
    raw = (tmp_path / "whole").read_bytes()
    path = tmp_path / "harmed"
    for length in [*range(0, 40), *range(40, len(raw), 67), len(raw) - 1]:
        path.write_bytes(raw[:length])
        check_refusal(path)
    path.write_bytes(raw + b"more")
    check_refusal(path)
    for start in (b"\xff" * 8, b"\x00" * 8, (2**63 - 1).to_bytes(8, "little")):
        path.write_bytes(start + raw[8:])
        check_refusal(path)
    load_curator_file(tmp_path / "whole")


GOOD: dict[str, Any] = {"model": "gan", "config": {}, "schema": TWINS.to_dict()}


@pytest.mark.parametrize(
    "about",
    [
        "",
        "{",
        "[" * 100_000,
        "null",
        "3",
        "[]",
        {},
        {**GOOD, "config": 3},
        {**GOOD, "config": "text"},
        {**GOOD, "config": None},
    ],
    ids=lambda about: str(about)[-40:],
)
def test_what_is_not_about_a_critic_is_refused(about: Any, tmp_path: Path) -> None:
    load_curator_file(saved(tmp_path / "good", GOOD))
    check_refusal(saved(tmp_path / "bad", about))


@pytest.mark.parametrize(
    "schema", [None, [], {"columns": 3}, {"columns": {"a": {"type": "integer", "min": 3, "max": 1}}}], ids=repr
)
def test_an_invalid_schema_is_refused(schema: Any, tmp_path: Path) -> None:
    with pytest.raises(SundogError) as caught:
        load_curator_file(saved(tmp_path / "bad", {**GOOD, "schema": schema}))
    assert "\n" not in str(caught.value)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    check_refusal(tmp_path / "nowhere")
    check_refusal(tmp_path)
    (tmp_path / "bare").write_bytes(safetensors.numpy.save({"a": np.zeros(2, np.float32)}))
    check_refusal(tmp_path / "bare")
    (tmp_path / "text").write_text("generator and critic")
    check_refusal(tmp_path / "text")
    fit(tmp_path / "o.sundog")
    check_refusal(tmp_path / "o.sundog")


# --- asking it ---


@SHAPES
def test_a_critic_from_a_file_scores_each_record_by_itself(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = SCHEMAS[shape]
    save_curator_file(tmp_path / "o", "gan", schema, parts_of(shape))
    _, kept, state = load_curator_file(tmp_path / "o")
    critic, records = Critic(kept, state), random_records(schema, 30, seed=5)
    scores = critic.score(records)
    assert scores.shape == (30,)
    assert scores.dtype == np.float64
    assert np.unique(scores).size > 5
    assert np.isfinite(scores).all()
    with torch.no_grad():
        whole = critic.network(critic.features.to_examples(records).take_vectors(np.arange(30)))
    np.testing.assert_allclose(scores, whole.numpy(), rtol=1e-4, atol=1e-6)
    monkeypatch.setattr(module, "choose_chunk_size", lambda *sizes: 7)
    np.testing.assert_allclose(critic.score(records), scores, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(critic.score(records.take([3, 3])), scores[[3, 3]], rtol=1e-4, atol=1e-6)
    assert critic.score(records.take([])).shape == (0,)


HOSTILE: list[dict[str, Any]] = [
    {"shape": "transformer"},
    {"shape": ["mlp"]},
    {"shape": None},
    {"hidden": 0},
    {"hidden": "8"},
    {"hidden": 2**62},
    {"hidden": 4096},
    {"condition": "no such column"},
    {"condition": ["label"]},
    {"condition": "basket"},
]


@pytest.mark.parametrize("harm", HOSTILE, ids=repr)
def test_an_invalid_configuration_is_refused(harm: dict[str, Any]) -> None:
    state = parts_of("mlp")
    with pytest.raises(DataError, match="not those of a critic"):
        Critic(TABLE, State(state.tensors, {**state.config, **harm}))
    for name in state.config:
        less = {key: value for key, value in state.config.items() if key != name}
        with pytest.raises(DataError, match="not those of a critic"):
            Critic(TABLE, State(state.tensors, less))


@SHAPES
@pytest.mark.parametrize("harm", ["gone", "more", "shape", "whole numbers"])
def test_weights_of_something_else_are_refused(shape: str, harm: str) -> None:
    state = parts_of(shape)
    for name, tensor in state.tensors.items():
        tensors = {**state.tensors, name: tensor}
        if harm == "gone":
            del tensors[name]
        elif harm == "more":
            tensors["generator"] = tensor
        elif harm == "shape":
            tensors[name] = np.zeros((*tensor.shape, 2), np.float32)
        elif name in ("means", "scale"):
            continue
        else:
            tensors[name] = tensor.astype(np.int64)
        with pytest.raises(DataError, match="not those of a critic"):
            Critic(SCHEMAS[shape], State(tensors, state.config))


@SHAPES
@pytest.mark.parametrize("harm", ["half", "nan"])
def test_weights_that_are_no_numbers_to_compute_with_are_refused(shape: str, harm: str) -> None:
    state = parts_of(shape)
    harmed = {
        name: np.asarray(tensor.astype(np.float16) if harm == "half" else np.nan * tensor)
        for name, tensor in state.tensors.items()
    }
    with pytest.raises(DataError, match="not those of a critic"):
        Critic(SCHEMAS[shape], State(harmed, state.config)).score(random_records(SCHEMAS[shape], 3))


def test_a_schema_that_is_not_complete_is_refused() -> None:
    with pytest.raises(DataError):
        Critic(schema_of({"a": {"type": "integer", "learn": True}}), parts_of("pairs"))


@SHAPES
def test_the_weights_of_another_schema_are_refused(shape: str) -> None:
    for other, schema in SCHEMAS.items():
        if other != shape:
            with pytest.raises(DataError, match="not those of a critic"):
                Critic(schema, parts_of(shape))
