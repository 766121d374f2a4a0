"""Evaluate quantifiers: errors on bags, searches, lower bounds, significance."""
