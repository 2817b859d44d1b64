"""Waiting sounds: a voice that begins in a silence, makes way for cues, and ends at the first sample of speech."""

import numpy as np
import pytest

import cues
from cues.mixing.voice import Wait
from tests.support.listening import new_clicks
from tests.support.mixing_scripts import RATE, run, tone, zeros

pytestmark = pytest.mark.usefixtures("loops")

LOOP = cues.Cue(name="hum", samples=0.05 * np.sin(2 * np.pi * 500 * np.arange(4800) / RATE), loop=True)
FADE = round(0.03 * RATE)


def talk(*parts):
    """Silences (int) and loud stretches (float, by their length in samples)."""
    return np.concatenate(
        [zeros(part) if isinstance(part, int) else np.full(int(part), 0.2, np.float32) for part in parts]
    )


def cuts(kind):
    rng = np.random.default_rng(7)
    return {"whole": lambda: 1 << 20, "20 ms": lambda: 480, "random": lambda: int(rng.integers(1, 900))}[kind]


def mixed(mixer, speech, cut):
    out, done = [], 0
    while done < len(speech):
        n = cut()
        out.append(np.array(mixer.mix(speech[done : done + n])))
        done += n
    return np.concatenate(out)


@pytest.mark.parametrize("cut", ["whole", "20 ms", "random"])
def test_speech_postpones_pauses_and_ends_it_at_exact_samples_on_any_frames(cut):
    speech = talk(1000, 500.0, 4000, 301.0, 6000, 2000.0, 3000)
    mixer = cues.Mixer()
    mixer.listens = True
    voice = mixer.play(LOOP, wait=Wait(patience=2000, until_heard_from=9000))
    mixed(mixer, speech, cuts(cut))
    assert voice.stretches == [(3500, 5500 + FADE), (7801, 11801 + FADE)]
    assert voice.done
    assert mixer.heard == 13800
    assert not mixer.active


@pytest.mark.parametrize("cue_before", [False, True])
@pytest.mark.parametrize("cut", ["whole", "20 ms", "random"])
def test_one_that_does_not_duck_leaves_the_answer_at_full_level(cut, cue_before):
    speech = talk(6000, 9000.0)
    mixer = cues.Mixer()
    if cue_before:  # its own duck is held over the first word, but for the pause
        mixer.play(tone(600), at=3000)
    mixer.play(LOOP, wait=Wait(patience=1000, until_heard_from=0, ducks=False))
    out = mixed(mixer, speech, cuts(cut))
    assert np.abs(out[4700:6000]).max() > 0.04
    np.testing.assert_array_equal(out[6000 + FADE :], speech[6000 + FADE :])
    assert np.abs(out - speech)[6000:].max() <= 0.05


def test_one_that_does_not_duck_lets_speech_pass_again_after_a_release():
    mixer = cues.Mixer()
    mixer.release()
    mixer.play(LOOP, wait=Wait(patience=2000, ducks=False))
    speech = talk(6000, 3000.0)
    out = mixed(mixer, speech, cuts("20 ms"))
    np.testing.assert_array_equal(out[6000 + FADE :], speech[6000 + FADE :])


def test_all_frames_give_the_same_bits():
    speech = talk(1000, 500.0, 4000, 301.0, 6000, 2000.0, 3000)
    outs = []
    for kind in ("whole", "20 ms", "random"):
        mixer = cues.Mixer()
        mixer.play(LOOP, wait=Wait(patience=2000, until_heard_from=9000))
        mixer.play(tone(), at=8000)
        outs.append(mixed(mixer, speech, cuts(kind)))
    np.testing.assert_array_equal(outs[0], outs[1])
    np.testing.assert_array_equal(outs[0], outs[2])


@pytest.mark.parametrize("frame", [1 << 20, 480])
def test_one_that_is_stolen_in_its_fade_waits_again(frame):
    mixer = cues.Mixer(voices=1, limiter=True)
    voice = mixer.play(LOOP, wait=Wait(), priority=1)
    mixer.play(tone(600), at=1300, priority=1)
    mixed(mixer, talk(1000, 100.0, 4000), lambda: frame)
    assert voice.stretches == [(0, 1300), (1900, None)]


def test_an_answer_before_its_begin_cancels_it():
    mixer = cues.Mixer()
    voice = mixer.play(LOOP, wait=Wait(patience=2000, until_heard_from=1200))
    speech = talk(1000, 500.0, 9000)
    np.testing.assert_array_equal(run(mixer, speech), speech)
    assert voice.done
    assert voice.stretches == []


@pytest.mark.parametrize("begins_again", [True, False])
def test_speech_over_it_is_its_end_unless_it_begins_again(begins_again):
    mixer = cues.Mixer()
    voice = mixer.play(LOOP, wait=Wait(patience=100, begins_again=begins_again))
    run(mixer, talk(4800, 480.0, 4800))
    assert [start for start, _ in voice.stretches] == ([100, 4800 + FADE] if begins_again else [100])
    assert voice.done is not begins_again


def test_it_is_given_up_at_a_sample():
    mixer = cues.Mixer()
    voice = mixer.play(LOOP, wait=Wait(give_up_at=10_000))
    run(mixer, zeros(4800))
    voice.wait = Wait(give_up_at=6000)
    run(mixer, zeros(4800))
    assert voice.stretches == [(0, 6000 + FADE)]
    assert voice.done
    late = mixer.play(LOOP, wait=Wait(not_before=mixer.position + 480, give_up_at=mixer.position + 100))
    assert not run(mixer, zeros(4800)).any()
    assert late.done


def test_it_is_silent_while_a_cue_sounds_and_waits_for_its_end():
    mixer, cue = cues.Mixer(), tone(4800)
    mixer.play(LOOP, wait=Wait(patience=1000))
    alone = cues.Mixer()
    for each in (mixer, alone):
        each.play(cue)
        each.play(cue, at=9600)
    out, expected = run(mixer, zeros(19200)), run(alone, zeros(19200))
    np.testing.assert_array_equal(out[:5800], expected[:5800])
    assert out[5801:9600].any()
    ramp = round(0.01 * RATE)
    np.testing.assert_array_equal(out[9600 + ramp : 14400], expected[9600 + ramp : 14400])
    assert (out[14400 + ramp :] != expected[14400 + ramp :]).any()
    assert new_clicks(out, np.zeros_like(out)) == []


def test_two_waiting_sounds_on_one_mixer_each_find_their_own_answer():
    mixer = cues.Mixer()
    first = mixer.play(LOOP, wait=Wait(until_heard_from=0))
    other = mixer.play(tone(2400), loop=True, wait=Wait(patience=100, until_heard_from=20_000))
    run(mixer, talk(4800, 480.0, 4800))
    assert first.done
    assert not other.done
    assert len(other.stretches) == 2


def test_a_released_or_stolen_one_does_not_come_back():
    mixer = cues.Mixer(voices=1)
    voice = mixer.play(LOOP, wait=Wait())
    run(mixer, zeros(480))
    mixer.play(tone())
    run(mixer, zeros(9600))
    assert voice.done
    voice = mixer.play(LOOP, wait=Wait())
    run(mixer, talk(480, 100.0))  # it fades, and would begin again
    mixer.release()
    run(mixer, zeros(4800))
    assert voice.done
    assert not mixer.active


def test_the_loudest_channel_is_the_speech():
    mixer, speech = cues.Mixer(channels=2), np.zeros((4800, 2), dtype=np.float32)
    speech[2000:2010, 1] = 0.2
    voice = mixer.play(LOOP, wait=Wait(until_heard_from=0))
    mixer.mix(speech)
    assert voice.stretches == [(0, 2000 + FADE)]
    assert mixer.heard == 2009


def test_the_first_word_that_meets_a_waiting_sound_is_ducked_as_under_any_cue():
    mixer, speech = cues.Mixer(), talk(4800, 40_000.0)
    mixer.listens = True
    voice = mixer.play(LOOP, wait=Wait(patience=480, until_heard_from=0))
    out = mixed(mixer, speech, lambda: 480)
    end, hold, release = 4800 + FADE, RATE // 5, RATE * 3 // 10
    assert voice.stretches == [(480, end)]
    np.testing.assert_allclose(out[end : end + hold], speech[end : end + hold] * 10 ** (-6 / 20), rtol=1e-5)
    np.testing.assert_array_equal(out[end + hold + release :], speech[end + hold + release :])


def test_what_is_heard_is_known_while_the_mixer_listens_or_is_busy():
    mixer = cues.Mixer()
    assert mixer.heard == -1
    mixer.mix(np.full(480, 0.2, dtype=np.float32))
    assert mixer.heard == -1
    mixer.listens = True
    frame = np.full(480, 0.0031, dtype=np.float32)
    assert mixer.mix(frame) is frame
    assert mixer.heard == -1
    frame[7] = -0.0032
    assert mixer.mix(frame) is frame
    assert mixer.heard == 967
    assert mixer.listens
    raw = (np.ones(480) * 104).astype("<i2").tobytes()
    assert mixer.mix_pcm16(raw) is raw
    assert mixer.heard == 1919


def test_speech_that_is_given_apart_is_the_only_speech():
    mixer, music = cues.Mixer(follow_speech=True), np.full(480, 0.3, dtype=np.float32)
    mixer.listens = True
    mixer.hear(zeros(0))
    voice = mixer.play(LOOP, wait=Wait(patience=480, until_heard_from=0))
    for _ in range(5):
        mixer.mix(music)
    assert voice.onset == 480
    assert mixer.heard == -1
    mixer.hear(np.full(480, 0.1, dtype=np.float32))
    mixer.mix(music)
    assert mixer.heard == 6 * 480 - 1
    assert voice.stretches == [(480, 5 * 480 + FADE)]


@pytest.mark.parametrize("values", [{"patience": 0.4 * RATE}, {"patience": -1}, {"give_up_at": None}], ids=str)
def test_a_wait_of_other_than_whole_samples_never_reaches_a_frame(values):
    with pytest.raises(cues.CueError, match=f"{next(iter(values))} is .*; it must be a whole number"):
        Wait(**values)


def test_what_is_not_a_wait_is_refused_and_the_voice_keeps_its_own():
    mixer = cues.Mixer(RATE)
    with pytest.raises(cues.CueTypeError, match="wait is 480; it must be a"):
        mixer.play(LOOP, wait=480)
    voice = mixer.play(LOOP, wait=Wait(patience=480))
    with pytest.raises(cues.CueTypeError, match="wait is None; it must be a"):
        voice.wait = None
    assert mixed(mixer, talk(4800), lambda: 480).any()


def test_a_wait_that_does_not_count_leaves_the_mixer_idle_until_it_begins():
    mixer = cues.Mixer(RATE)
    voice = mixer.play(LOOP, wait=Wait(patience=960, counts=False))
    assert not mixer.active
    mixer.silence(480)
    assert not mixer.active
    voice.wait = Wait(patience=960)
    assert mixer.active
    voice.wait = Wait(patience=960, counts=False)
    mixer.silence(960)
    assert mixer.active


@pytest.mark.parametrize("end", ["stop", "release", "close"])
@pytest.mark.parametrize("heard", [2399, 2400, 2401])
def test_a_phrase_that_waits_again_stays_silent_where_it_is_stopped_at_its_end(end, heard):
    phrase = cues.Cue(name="hum", samples=LOOP.samples[:2400], sample_rate=RATE)
    cue = cues.Cue(name="hum", samples=phrase.samples, sample_rate=RATE, loop=True, phrases=(phrase,))
    mixer = cues.Mixer()
    voice = mixer.play(cue, wait=Wait())
    assert np.array(mixer.mix(zeros(heard))).any()
    (voice.stop if end == "stop" else getattr(mixer, end))()
    mixer.silence(2400)
    assert not mixer.silence(RATE).any()
