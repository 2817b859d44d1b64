"""Shared operations on samples: fades, resampling, int16, interpolation, spectra, prediction, concealment."""
