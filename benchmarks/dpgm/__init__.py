"""What the benchmarks of a mixture of generative networks share."""
