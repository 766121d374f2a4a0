"""Every method with its facts, and estimators built by name."""
