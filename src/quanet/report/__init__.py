"""Results made visible."""
