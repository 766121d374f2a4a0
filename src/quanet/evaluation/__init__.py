"""How good estimates are: errors on bags, searches, lower bounds, significance; diagnoses of bags; monitors."""
