"""What the benchmarks of private adversarial training share."""
