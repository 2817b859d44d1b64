"""Batches: measure thousands of recordings or mix cues into them, on all cores or on a Dask cluster.

Read `tasks`, `runner` and `journal`; then `measuring` and `mixing`. Pure functions run the tasks, and a journal gets
each result at once: after any failure, the same command resumes.
"""
