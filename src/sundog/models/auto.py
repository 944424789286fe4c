"""Which model `auto` chooses, by what is public: the schema, the budget, the device and the options."""

from __future__ import annotations

from sundog.data.columns import Form
from sundog.data.schema import Schema

_FEW = 4000.0  # ε times records: with fewer, dependences between items or pixels are lost in the noise

REASONS = {
    "marginals": "every column has one value per record; it learns columns and pairs of them, in narrow tables also "
    "triples, and nothing that shows only in more columns together",
    "rbm": "it learns which items, pixels and values occur together",
    "independent": "there are too few records, or people own several, to learn which items or pixels occur together",
    "gan": "there are series, public records of sets or images, or a GPU to train on",
}


def choose_model(
    schema: Schema,
    *,
    epsilon: float,
    records: int | None = None,
    device: str = "cpu",
    public: bool = False,
    clusters: int = 1,
) -> str:
    """Return the name of the model that did best on records like these (benchmarks/auto_choice.py).

    >>> census = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 99}}})
    >>> days = Schema.from_dict({"columns": {"load": {"type": "series", "length": 96, "min": 0, "max": 9}}})
    >>> choose_model(census, epsilon=1.0), choose_model(days, epsilon=1.0)
    ('marginals', 'gan')
    >>> visits = Schema.from_dict({"columns": {"pages": {"type": "set", "universe": 100, "max_size": 9}}})
    >>> choose_model(visits, epsilon=1.0), choose_model(visits, epsilon=1.0, records=100)
    ('rbm', 'independent')

    Args:
        schema: of the records.
        epsilon: the budget.
        records: about how many there are; None if that is not known yet.
        device: where networks train.
        public: whether there are public records.
        clusters: how many components the model is to have.
    """
    forms = {column.form for column in schema.columns.values()}
    if forms == {Form.SCALAR}:
        return "marginals"
    if clusters != 1:
        return "rbm"
    people = schema.unit is not None and schema.cap > 1
    on_gpu = device != "cpu"
    if Form.SERIES in forms or public or (on_gpu and (people or Form.IMAGE in forms)):
        return "gan"
    few = records is not None and epsilon * records < _FEW
    return "independent" if people or (few and not on_gpu) else "rbm"
