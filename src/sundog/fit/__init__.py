"""One fit: the request, its stages, and `Synthesizer`, the public interface."""
