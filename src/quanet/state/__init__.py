"""What partitions of instances come to: states that are mergeable, bounded and deterministic."""
