"""What all adapters that pace their output by a clock have in common."""

import numpy as np
import pytest

from cues.adapters._paced import PacedCues
from cues.signal.fades import raised_cosine
from tests.support.listening import splatter_db


class Clock:
    now_s = 0.0

    def now(self):
        return self.now_s


def speak(paced, tone, rate, n_piece=441):
    for start in range(0, len(tone), n_piece):
        paced.push(paced.at_own_rate(tone[start : start + n_piece], rate))
    paced.end()


def heard(paced, seconds):
    frames = []
    while paced.clock.now_s < seconds:
        frames += paced.frames()
        paced.clock.now_s += 0.004
    return np.concatenate(frames)


@pytest.mark.parametrize("begin_s", [None, 0.0, 0.3021], ids=["alone", "another follows", "one in mid-sound follows"])
@pytest.mark.parametrize("n_more", [0, 18, 37, 61])
@pytest.mark.parametrize("rates", [(8000, 8000), (24000, 8000), (22050, 24000), (16000, 24000), (16000, 8000)], ids=str)
def test_speech_of_any_rate_that_ends_in_mid_sound_fades_out_without_a_click(rates, n_more, begin_s):
    from_rate, to_rate = rates
    tone = (0.4 * np.sin(2 * np.pi * 220 * np.arange(from_rate) / from_rate)).astype(np.float32)
    n_edge, n_first = from_rate // 20, from_rate // 2 + n_more
    tone[:n_edge] *= raised_cosine(n_edge)
    tone[-n_edge:] *= raised_cosine(n_edge)[::-1]
    paced = PacedCues({"clock": Clock()}, sample_rate=to_rate)
    speak(paced, tone[:n_first], from_rate)
    assert abs(paced.pacer.queued_samples - n_first * to_rate / from_rate) <= 0.5
    if begin_s is not None:
        speak(paced, tone[round(begin_s * from_rate) :], from_rate)
        n_expected = (n_first + len(tone) - round(begin_s * from_rate)) * to_rate / from_rate
        assert abs(paced.pacer.queued_samples - n_expected) <= 1.0
    out = heard(paced, 2.0)
    assert splatter_db(out, 2500, to_rate) < -95
