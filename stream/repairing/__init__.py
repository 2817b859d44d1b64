"""Repairs streams of Chat Completions: `streams` is for programs; below them `chat` (chunks) and `sse` (bytes).

A chunk in which nothing was held or changed passes as the very object. What was held or changed comes in new chunks,
each with one piece of text, one piece of thoughts or one call.
"""
