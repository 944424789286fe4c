"""The networks of `step_time.py`, our training step, and those of the peers."""
