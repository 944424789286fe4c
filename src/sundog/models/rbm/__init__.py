"""A restricted Boltzmann machine."""
