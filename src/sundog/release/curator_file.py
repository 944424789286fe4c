"""The curator's file: the parts of a fit that are not released, such as a GAN's critic.

Its content was paid for like the rest and reveals no more than the budget allows. But it shows better than anything in
the release whether a record looks like the training data, so only auditors should have it. Audits load it with
`load_curator_file`.
"""

from __future__ import annotations

import json
from pathlib import Path

import safetensors
import safetensors.numpy

from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError
from sundog.files import replace_file
from sundog.models.protocol import State

SUFFIX = ".private"
_NOTE = "not part of the release: keep it to yourself"


def get_curator_path(release: Path) -> Path:
    """Return the path of the curator's file of a release.

    >>> get_curator_path(Path("out/digits.sundog")).as_posix()
    'out/digits.sundog.private'
    """
    return release.with_name(release.name + SUFFIX)


def save_curator_file(path: Path, model: str, schema: Schema, state: State) -> None:
    """Write the file, whole or not at all, readable only by its owner."""
    about = json.dumps({"model": model, "config": state.config, "schema": schema.to_dict()})
    with replace_file(path, owner_only=True) as file:
        file.write(safetensors.numpy.save(state.tensors, metadata={"note": _NOTE, "about": about}))


def is_curator_file(path: Path) -> bool:
    """Return whether the file is the curator's file of a release."""
    try:
        return bool(load_curator_file(path))
    except DataError:
        return False


def load_curator_file(path: str | Path) -> tuple[str, Schema, State]:
    """Return the name of the model, its schema, and the state that was not released."""
    try:
        raw = Path(path).read_bytes()
        tensors = safetensors.numpy.load(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        about = json.loads(header["__metadata__"]["about"])
        return str(about["model"]), Schema.from_dict(about["schema"]), State(dict(tensors), dict(about["config"]))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except (SundogError, safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: is not the curator's part of a release; give the file that `fit` wrote") from None
