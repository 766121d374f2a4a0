"""Labelled data: tables, generators with known densities, and datasets by name."""
