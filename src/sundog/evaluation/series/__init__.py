"""Time series: their values, their shape over time, and copies."""
