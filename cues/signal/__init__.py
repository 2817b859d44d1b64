"""Operations on samples that the other rooms share: fades, resampling, int16, interpolation, spectra, prediction."""
