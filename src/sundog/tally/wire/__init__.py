"""The messages of the tally, the same bytes in Python and TypeScript."""
