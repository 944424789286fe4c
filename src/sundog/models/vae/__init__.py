"""A variational autoencoder."""
