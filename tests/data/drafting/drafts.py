"""Drafts without warnings."""

from __future__ import annotations

import warnings
from typing import Any

from sundog.data.drafting.draft import draft
from sundog.data.schema import Schema


def draft_quietly(data: Any) -> Schema:
    with warnings.catch_warnings(action="ignore"):
        return draft(data)


def draft_columns(data: Any) -> dict[str, Any]:
    found = draft_quietly(data).to_dict()["columns"]
    assert isinstance(found, dict)
    return found
