"""The clipped sum of per-example gradients, exactly, without computing per-example gradients."""
