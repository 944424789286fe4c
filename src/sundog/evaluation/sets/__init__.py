"""Sets of items: frequencies, co-occurrence, sizes and counting queries."""
