"""Independent columns: noisy one-way marginals."""
