"""Drafts of schemas, guessed from the data: NOT PRIVATE until reviewed."""
