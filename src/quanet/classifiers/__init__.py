"""Classifiers of texts and numbers: cross-fitting, calibration, stacking."""
