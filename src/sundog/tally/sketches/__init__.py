"""Sketches: short vectors from which the counts of many keys can be estimated, and which add up."""

from sundog.tally.sketches.count_min import CountMin
from sundog.tally.sketches.count_sketch import CountSketch

__all__ = ["CountMin", "CountSketch"]
