"""A small audit to show on pages, as it is and with hostile texts."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from tests.auditing.copied_records import make_table
from tests.auditing.released_table import make_release
from tests.evaluation.report.sample_report import HOSTILE

from sundog.auditing.audit_result import Audit
from sundog.auditing.auditor import audit


@functools.cache
def make_audit() -> Audit:
    """An audit of a release that keeps its promise."""
    members, nonmembers = (make_table(np.random.default_rng(seed), 400) for seed in (100, 200))
    return audit(make_release(), members=members, nonmembers=nonmembers, quick=True)


def make_hostile_audit() -> Audit:
    """The same, in which every text from outside is markup."""
    plain = make_audit()
    finding = replace(plain.findings[0], summary=HOSTILE)
    about = {**plain.about, HOSTILE: HOSTILE}
    return replace(plain, name=HOSTILE, findings=(finding,), notes=(HOSTILE,), not_tried=(HOSTILE,), about=about)
