"""Record and replay: a whole fit on two neighbouring inputs with the same noisy results."""
