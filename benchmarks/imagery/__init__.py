"""Attacks on generators of images: targets, experiments, and their figures."""
