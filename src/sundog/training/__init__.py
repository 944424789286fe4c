"""DP-SGD at nearly the price of SGD: exact per-example clipping without per-example gradients."""
