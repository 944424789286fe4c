"""Games: many runs of one mechanism, with and without a record, and a guess at each."""
