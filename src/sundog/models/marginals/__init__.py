"""A graphical model of noisy marginals: the default for tables."""
