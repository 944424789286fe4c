"""Shared by the benchmarks of mixtures."""
