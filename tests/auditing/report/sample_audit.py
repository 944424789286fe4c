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
from sundog.auditing.finding import Finding, Verdict
from sundog.evaluation.measure import Measure


@functools.cache
def make_audit() -> Audit:
    """An audit of a release that keeps its promise."""
    members, nonmembers = (make_table(np.random.default_rng(seed), 400) for seed in (100, 200))
    return audit(make_release(), members=members, nonmembers=nonmembers, quick=True)


@functools.cache
def make_broken_audit() -> Audit:
    """The same, in which all audits but the attacks find a broken promise; some figures are paid for."""
    plain = make_audit()
    membership, replay, canaries, game = plain.findings
    found = [f"order of charges and draws: {place} became {place + 1} (added: age = 'x')" for place in range(20)]
    details = {**replay.details, "differences": 23, "first_differences": found}
    broken = [replace(each, verdict=Verdict.BROKEN, bound=2.5) for each in (canaries, game)]
    game_details = {**game.details, "mu": {"value": None, "low": 0.0, "high": None}}
    published = {"membership.members_guessed": Measure(0.12, 0.1, 0.14), "membership.advantage": Measure(0.01, 0, 0.02)}
    replayed = Finding(replay.name, replay.summary, 0.0, replay.promise, replay.delta, Verdict.BROKEN, details)
    findings = (membership, replayed, broken[0], replace(broken[1], details=game_details))
    return replace(plain, findings=findings, published=published)


def make_hostile_audit() -> Audit:
    """The same, in which every text from outside is markup."""
    plain = make_audit()
    findings = [replace(each, summary=HOSTILE) for each in make_broken_audit().findings]
    findings[1] = replace(findings[1], details={**findings[1].details, "first_differences": [HOSTILE]})
    about = {**plain.about, HOSTILE: HOSTILE}
    return replace(plain, name=HOSTILE, findings=tuple(findings), notes=(HOSTILE,), not_tried=(HOSTILE,), about=about)
