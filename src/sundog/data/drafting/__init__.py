"""A first guess at a schema, by looking at the data: NOT PRIVATE until it was reviewed."""
