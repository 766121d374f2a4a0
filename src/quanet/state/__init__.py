"""Mergeable summaries of the rows read so far: bounded in size, and the same in any order of merging."""
