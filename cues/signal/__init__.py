"""Shared operations on samples: fades, resampling, int16, interpolation, spectra, linear prediction."""
