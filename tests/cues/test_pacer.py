"""The pacer, on a clock that the test moves."""

from __future__ import annotations

import numpy as np
import pytest

import cues
from tests.cues.mixing_scripts import noise_cue, speech, tone


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def paced(**options):
    clock = Clock()
    mixer = cues.Mixer()
    return cues.Pacer(mixer, clock=clock, **options), mixer, clock


def test_frames_are_released_at_most_the_lead_ahead():
    pacer, mixer, clock = paced(lead_ms=80)
    pacer.push(speech(24000))
    for k in range(40):
        clock.now_s = 100 + k * 0.01
        pacer.due()
        assert mixer.position <= round((clock.now_s - 100) * 24000) + 1920
        assert mixer.position >= round((clock.now_s - 100) * 24000) + 1920 - 480


def test_speech_comes_out_unchanged_whatever_the_pieces():
    pacer, _, clock = paced()
    talk = speech(24000)
    for start in range(0, 24000, 777):
        pacer.push(talk[start : start + 777])
    pacer.end()
    out = []
    for k in range(120):
        clock.now_s = 100 + k * 0.01
        out += pacer.due()
    np.testing.assert_array_equal(np.concatenate(out)[:24000], talk)
    assert pacer.underruns == 0


def test_a_cue_is_heard_within_the_lead_however_much_speech_is_queued():
    pacer, mixer, clock = paced(lead_ms=80)
    pacer.push(np.zeros(240_000, dtype=np.float32))
    pacer.due()
    mixer.play(noise_cue())
    clock.now_s += 0.02
    assert np.concatenate(pacer.due()).any()
    assert mixer.lead_samples == pacer.lead_samples == 1920


def test_a_cue_without_speech_clocks_itself():
    pacer, mixer, clock = paced()
    assert pacer.due() == []
    assert pacer.wait_s() is None
    mixer.play(tone(4800))
    out = []
    for k in range(100):
        clock.now_s = 100 + k * 0.01
        out += pacer.due()
    np.testing.assert_array_equal(np.concatenate(out)[:4800], tone(4800).samples)
    assert len(out) == 10
    assert mixer.stats.silence_frames == 10
    assert pacer.underruns == 0


def test_speech_that_comes_too_late_is_an_underrun_once():
    pacer, _, clock = paced()
    pacer.push(speech(4800))
    for k in range(100):
        clock.now_s = 100 + k * 0.01
        pacer.due()
    assert pacer.underruns == 1
    pacer.push(speech(480))
    assert len(pacer.due()) == 1


def test_a_pause_after_the_end_is_none():
    pacer, _, clock = paced()
    pacer.push(speech(4800))
    pacer.end()
    for k in range(100):
        clock.now_s = 100 + k * 0.01
        pacer.due()
    assert pacer.underruns == 0


def test_after_a_pause_the_lead_is_not_made_up_for():
    pacer, _, clock = paced(lead_ms=80)
    pacer.push(speech(480))
    pacer.end()
    pacer.due()
    clock.now_s += 60
    pacer.push(speech(24000))
    assert len(pacer.due()) == 4


def test_wait_says_when_the_next_frame_is_due():
    pacer, _, clock = paced(lead_ms=80)
    pacer.push(speech(24000))
    assert pacer.wait_s() == 0.0
    pacer.due()
    wait = pacer.wait_s()
    assert wait == pytest.approx(0.02, abs=1e-3)
    clock.now_s += wait + 1e-6
    assert len(pacer.due()) == 1


def test_an_interrupt_fades_and_tells_what_was_never_spoken():
    pacer, mixer, clock = paced()
    pacer.push(np.full(24000, 0.3, dtype=np.float32))
    released = sum(len(frame) for frame in pacer.due())
    dropped = pacer.interrupt(fade_ms=30)
    assert dropped == 24000 - released - 720
    out = []
    for k in range(20):
        clock.now_s = 100 + k * 0.01
        out += pacer.due()
    fade = np.concatenate(out)
    assert np.abs(np.diff(fade / 0.3, 2)).max() < 4.1e-4
    assert not fade[720:].any()
    pacer.push(np.full(4800, 0.3, dtype=np.float32))
    clock.now_s += 1
    assert not np.concatenate(pacer.due()).any()
    mixer.resume()


def test_a_sample_may_be_cut_in_two_by_the_network():
    pacer, _, clock = paced()
    pcm = (speech(4800) * 32767).astype("<i2").tobytes()
    for start in range(0, len(pcm), 333):
        pacer.push_pcm16(pcm[start : start + 333])
    out = []
    for k in range(40):
        clock.now_s = 100 + k * 0.01
        out += pacer.due()
    np.testing.assert_array_equal(np.concatenate(out)[:4800] * 32768, np.frombuffer(pcm, dtype="<i2"))


@pytest.mark.parametrize("options", [{"frame_samples": 0}, {"lead_ms": 5}, {"lead_ms": float("nan")}], ids=str)
def test_a_pacer_that_cannot_be_is_refused(options):
    with pytest.raises(cues.CueError, match="lead"):
        cues.Pacer(cues.Mixer(), **options)


def test_an_hour_of_frames_keeps_to_the_clock():
    pacer, mixer, clock = paced(frame_samples=24000, lead_ms=2000)
    second = np.zeros(24000, dtype=np.float32)
    pacer.push(second)
    for k in range(3600):
        clock.now_s = 100.0 + k
        pacer.push(second)
        pacer.due()
    assert mixer.position == 24000 * 3601
    assert pacer.underruns == 0
