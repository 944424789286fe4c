"""Releases for the sentences of a headline."""
