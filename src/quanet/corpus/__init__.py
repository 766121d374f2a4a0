"""From files to bags: mergeable states of the rows read so far, and who reads the files.

States are bounded in size, and the same in any order of merging. An engine (this process, processes, Ray, Spark) is a
function ``run(work, partitions, workers) -> Iterator[bytes]``. It calls ``work(partition)`` somewhere and yields the
results in any order, perhaps one of them twice: the answer must not depend on order or repetition.
"""
