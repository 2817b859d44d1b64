"""Measurements of sound."""
