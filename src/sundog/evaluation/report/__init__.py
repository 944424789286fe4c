"""The report of an evaluation: headline, tables and plots on one HTML page."""
