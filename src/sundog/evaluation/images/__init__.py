"""Images: scores by a small judge, classifiers that learn from them, and what to look at."""
