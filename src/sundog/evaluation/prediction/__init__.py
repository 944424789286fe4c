"""What can be learned from synthetic records: predicting a column, and telling synthetic from real."""
