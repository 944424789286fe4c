"""The tables of settings in docs/ are those of the configuration classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundog.models.registry import MODELS, get_configuration

DOCS = Path(__file__).parents[2] / "docs"


def settings_table(name: str) -> str:
    """Return the table of a page; paste it there if a test says that it differs."""
    rows = ["| setting | values | default | |", "|---|---|---|---|"]
    rows += [
        f"| `{setting.name}` | {setting.values} | {setting.default} | {setting.description} |"
        for setting in get_configuration(name).list_settings()
    ]
    return "\n".join(rows)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "independent"])
def test_the_page_of_a_model_lists_its_settings(name: str) -> None:
    assert settings_table(name) in (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_is_described_and_its_default_is_right(name: str) -> None:
    for setting in get_configuration(name).list_settings():
        assert setting.description, setting.name
        assert setting.values, setting.name
        assert setting.default or "by default" in setting.description or setting.name == "condition", setting.name
