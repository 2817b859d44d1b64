"""Batches: measure thousands of recordings or mix cues into them, on all cores or on a Dask cluster.

Read `run` and `rows`; then `measuring` and `mixing`. Each row is in the table as soon as its recording
is done: after any failure, the same command resumes.
"""
