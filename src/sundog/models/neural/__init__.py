"""What the models that train a network share."""
