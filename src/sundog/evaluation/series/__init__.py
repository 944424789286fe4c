"""Time series: how close their shapes are, and what networks make of them."""
