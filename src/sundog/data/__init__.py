"""Schemas, readers, encoders and writers: from a file of any kind to integer codes, and back."""
