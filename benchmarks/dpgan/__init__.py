"""Shared by the benchmarks of the GAN."""
