"""Every numba loop of the package, and nothing else: one place to warm up, to test against plain Python, to replace."""
