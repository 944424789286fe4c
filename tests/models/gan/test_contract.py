"""What every model promises, of the adversarial network."""

from __future__ import annotations

import pytest
from tests.contracts.model_contract import ModelContract
from tests.models.gan.material import QUICK

from sundog.models.gan.gan import Gan

pytestmark = pytest.mark.usefixtures("quick")


class TestGan(ModelContract):
    model = Gan
    settings = QUICK
