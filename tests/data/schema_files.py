"""Files of schemas, and the errors about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundog.data.schema import Schema
from sundog.errors import SchemaError


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.schema.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def catch_message(path: Path) -> str:
    with pytest.raises(SchemaError) as caught:
        Schema.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")
