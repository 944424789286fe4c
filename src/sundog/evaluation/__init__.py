"""What a release is worth: how close to the real data it is, and how useful for the work people do with it."""
