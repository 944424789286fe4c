"""The generative models, one folder each: configuration, model and reader of releases (protocol.py, registry.py)."""
