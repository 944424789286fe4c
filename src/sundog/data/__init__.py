"""Reading, schema and encoders: from a file of any kind to integer codes on a declared lattice, and back."""
