"""Pages that need a cluster: tests/engines runs them, with the cluster that its tests have started."""

collect_ignore = ["how-to/ray.md", "how-to/spark.md"]
