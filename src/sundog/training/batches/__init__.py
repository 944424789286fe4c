"""The examples of a training, and the Poisson batches that are drawn from them."""
