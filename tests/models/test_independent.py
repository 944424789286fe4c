from __future__ import annotations

from sundog.models.independent import Independent
from tests.contracts.model_contract import ModelContract


class TestIndependent(ModelContract):
    model = Independent
