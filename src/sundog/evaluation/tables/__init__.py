"""Fidelity of tables: marginals, associations, shapes and trends, coverage, distances."""
