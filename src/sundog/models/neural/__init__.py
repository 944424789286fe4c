"""Features, plans, training and sampling that all networks share."""
