"""Which networks fit which records: pairs for tables, convolutions for images, an LSTM for series, or perceptrons."""

from __future__ import annotations

from sundog.data.columns import Form
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.neural.layout import Layout

SHAPES = ("mlp", "pairs", "conv", "lstm")
_WIDEST = 2048  # features: a critic of pairs has a weight for each two of them


def choose_shape(schema: Schema) -> str:
    """Return the kind of networks for a schema: pairs for tables, conv for one image, mlp for everything else."""
    columns = schema.columns.values()
    if all(column.is_scalar for column in columns) and _count_features(schema) <= _WIDEST:
        return "pairs"
    images = [column for column in columns if column.form is Form.IMAGE]
    return "conv" if len(images) == len(list_arrays(schema)) == 1 and not has_people(schema) else "mlp"


def has_people(schema: Schema) -> bool:
    """Return whether an example is a person with several records."""
    return schema.unit is not None and schema.cap > 1


def list_arrays(schema: Schema) -> list[str]:
    """Return the images and series of a schema."""
    return [name for name, column in schema.columns.items() if column.form in (Form.IMAGE, Form.SERIES)]


def refuse_shape(schema: Schema, shape: str) -> None:
    """Raise if records are not of this shape."""
    found = list_arrays(schema)
    if shape not in ("mlp", "pairs") and len(found) != 1:
        raise SundogError(
            f"model 'gan': shape {shape!r} needs one image or series, and there are {len(found)}; use mlp"
        )
    if shape == "pairs" and (width := _count_features(schema)) > _WIDEST:
        raise SundogError(
            f"model 'gan': shape 'pairs' has a weight for each two of at most {_WIDEST} features, and there are "
            f"{width}; use mlp"
        )
    if shape == "conv" and has_people(schema):
        raise SundogError(
            f"model 'gan': shape 'conv' judges single records, and people have up to {schema.cap} here; use mlp or lstm"
        )
    if shape == "lstm" and schema.columns[found[0]].form is Form.IMAGE:
        raise SundogError(f"model 'gan': shape 'lstm' is for series, and {found[0]!r} is an image; use conv")


def _count_features(schema: Schema) -> int:
    """Return the number of features, without those of columns that are still to be learned."""
    columns = schema.columns.items()
    known = {name: column for name, column in columns if column.complete and not column.awaits_edges}
    return Layout(schema.model_copy(update={"columns": known})).width
