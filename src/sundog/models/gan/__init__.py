"""Generative adversarial networks, trained privately: the networks, what they play for, and how they take turns."""
