"""Sets of items: counting queries, and how often items come, alone and together."""
