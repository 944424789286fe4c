"""The generative models: one folder each, behind one protocol."""
