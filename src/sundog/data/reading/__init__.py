"""Readers of every kind of source: each value is read alone."""
