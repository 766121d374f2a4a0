"""Engines: run the same work on all partitions, in processes of this machine, on Ray or on Spark.

An engine is a function ``run(work, partitions, workers) -> Iterator[bytes]``. It calls ``work(partition)`` somewhere
and yields the results in any order, perhaps one of them twice: the answer must not depend on order or repetition.
"""
