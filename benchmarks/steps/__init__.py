"""What `step_time.py` measures: the networks, our training step, and those of the peers."""
