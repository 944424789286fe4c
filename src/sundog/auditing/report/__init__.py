"""The result of an audit as one HTML page."""
