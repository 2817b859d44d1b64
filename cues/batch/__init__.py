"""Thousands of recordings at once: measured, or with cues mixed into them; on all cores, or on a Dask cluster.

Work is cut into tasks that are done by pure functions, and every result is written to a journal as it comes: whatever
breaks, the next run of the same command goes on from there.
"""
