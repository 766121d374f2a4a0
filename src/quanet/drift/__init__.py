"""How far new data are from the training data, and how many points that may cost."""
