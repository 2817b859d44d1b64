"""Calls from the wire: put together, compared, and brought into the order of the stream."""
