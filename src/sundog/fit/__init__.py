"""One fit: the request, its stages, and `Synthesizer`, the front door."""
