"""The model of marginals: its contract, what it learns, conditions, and what it costs."""

from __future__ import annotations

from tests.contracts.material import KINDS, constant_records, joined, schema_of
from tests.contracts.model_contract import ModelContract, every_kind

from sundog.models.marginals.marginals import Marginals


class TestMarginals(ModelContract):
    model = Marginals

    @every_kind
    def test_one_extreme_record_more_changes_no_shape_and_no_key(self, kind: str) -> None:
        """Marginals have the shapes of their columns; groups and cliques follow from noisy counts, and may differ."""
        schema = schema_of(KINDS[kind])
        few = constant_records(schema, 200)
        states = [self.fit(r)[0].state() for r in (few, joined(few, constant_records(schema, 1, last=True)))]
        shapes = [
            {name: t.shape for name, t in state.tensors.items() if not name.startswith("potential")} for state in states
        ]
        assert shapes[0] == shapes[1]
        assert states[0].config.keys() == states[1].config.keys()
