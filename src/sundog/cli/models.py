"""List the models, or the settings of one, as `fit` takes them by `--set name=value`.

Example: sundog models rbm
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from sundog.cli.console import say, say_json

if TYPE_CHECKING:
    from sundog.models.configuration import Setting


def run(
    name: Annotated[
        str | None, typer.Argument(help="The model: independent, rbm, vae, gan, or mixture (of `--clusters`).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Print the models, or the settings of one."""
    from sundog.models.registry import MODELS, get_configuration

    if name is None:
        summaries = {model: str(get_configuration(model).__doc__).splitlines()[0] for model in MODELS}
        if as_json:
            say_json(summaries)
        else:
            say("\n".join(f"{model:<12} {summary}" for model, summary in summaries.items()))
        return
    settings = get_configuration(name).list_settings()
    if as_json:
        say_json({"model": name, "settings": [asdict(setting) for setting in settings]})
    else:
        say("\n".join(map(_describe, settings)) if settings else f"model {name!r} has no settings")


def _describe(setting: Setting) -> str:
    default = f" (default {setting.default})" if setting.default else ""
    return f"{setting.name}: {setting.description}\n    {setting.values}{default}"
