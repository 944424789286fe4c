"""Writers of synthetic records: files, DataFrames, pictures."""
