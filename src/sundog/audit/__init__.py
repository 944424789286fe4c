"""Attacks on a release, and what they prove about its guarantee."""
