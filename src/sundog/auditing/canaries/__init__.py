"""Empirical ε from one fit: planted records, each there or not by a coin, and guesses about them."""
