"""Models trained on synthetic records: predicting a column, and distinguishing synthetic from real."""
