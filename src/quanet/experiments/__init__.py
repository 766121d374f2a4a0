"""Experiments: a plan in, one stored cell for every dataset, method and run out."""
