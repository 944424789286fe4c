"""How close two tables are: marginals, associations, shapes and trends, coverage, distances."""
