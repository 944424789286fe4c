"""Random Fourier features, private k-means, and mixtures."""
