"""Audits of a release: attacks on it, and what they prove about its guarantee."""
