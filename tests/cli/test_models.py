"""`sundog models`: the models, and the settings of one."""

from __future__ import annotations

import pytest
from tests.cli.calling import Sundog

from sundog.models.registry import MODELS, get_configuration


@pytest.mark.parametrize("name", MODELS)
def test_the_settings_of_a_model_are_printed(sundog: Sundog, name: str) -> None:
    called = sundog("models", name)
    assert called.code == 0
    for setting in get_configuration(name).list_settings():
        assert f"{setting.name}: {setting.description}\n    {setting.values}" in called.out
    assert sundog("models", name, "--json").json["settings"] == [
        vars(setting) for setting in get_configuration(name).list_settings()
    ]


def test_without_a_name_the_models_are_listed(sundog: Sundog) -> None:
    assert [line.split()[0] for line in sundog("models").out.splitlines()] == list(MODELS)
    assert set(sundog("models", "--json").json) == set(MODELS)


def test_an_unknown_model_is_refused(sundog: Sundog) -> None:
    assert sundog("models", "rbmm").complaint == "there is no model 'rbmm'; did you mean 'rbm'?"
