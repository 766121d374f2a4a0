"""Monitor a prevalence over time: estimates of batches, and an alarm when the prevalence changes."""
