import numpy as np
import pytest

from cues.signal.prediction import faded_continuation, predictors


def autocorrelations(samples, order):
    return np.array([samples[: len(samples) - lag] @ samples[lag:] for lag in range(order + 1)])


@pytest.mark.parametrize("order", [1, 12, 24])
def test_predictors_solve_the_normal_equations(order):
    rng = np.random.default_rng(order)
    lags = np.array([autocorrelations(rng.standard_normal(960), order) for _ in range(3)])
    distances = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
    solved = [np.linalg.solve(row[distances], row[1:]) for row in lags]
    np.testing.assert_allclose(predictors(lags), solved, atol=1e-7)


def test_silence_has_a_predictor_of_zeros():
    assert not predictors(np.zeros((2, 13))).any()


def test_a_tone_goes_on_and_ends_in_silence():
    tone = np.sin(0.1 * np.arange(1200)).astype(np.float32)
    after = faded_continuation(tone[:960], 240)
    np.testing.assert_allclose(after[:24], tone[960:984], atol=0.05)
    assert after[-1] == 0.0


@pytest.mark.parametrize("past", [np.zeros(0), np.zeros(1), np.zeros(960), np.ones(1)], ids=lambda past: str(len(past)))
def test_nothing_goes_on_after_silence_or_too_little(past):
    assert not faded_continuation(past.astype(np.float32), 24).any()
