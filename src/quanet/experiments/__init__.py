"""Experiments: run the cells of a plan (dataset, method, run) and store their results."""
