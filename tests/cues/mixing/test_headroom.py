"""Room for cues is planned: the speech goes deeper, then the cues lower, before any sample has to be cut off."""

import numpy as np
import pytest

import cues
from cues.synthesis.voicelike import speak_voice_like

pytestmark = pytest.mark.usefixtures("loops")

N = 12000
ATTACK = 480


def steady(peak: float, n_samples: int = N) -> cues.Cue:
    """A cue that is as loud as it gets all the time."""
    edges = np.clip(np.minimum(np.arange(n_samples), np.arange(n_samples)[::-1]) / 240, 0, 1)
    return cues.Cue(name="steady", samples=peak * (0.5 - 0.5 * np.cos(np.pi * edges)))


def reach(play, mixer_options=None) -> tuple[np.ndarray, np.ndarray]:
    """The speech's gain, and what the cues add, while `play` acts on a mixer at every 1000th sample."""
    told = []
    for level in (0.0, 0.01):
        mixer, out = cues.Mixer(**(mixer_options or {})), []
        for start in range(0, N, 1000):
            play(mixer, start)
            out.append(mixer.mix(np.full(1000, level, dtype=np.float32)))
        told.append(np.concatenate(out).astype(np.float64))
    return (told[1] - told[0]) / 0.01, told[0]


def at_start(*peaks, **options):
    def play(mixer, start):
        for peak in peaks if start == 0 else ():
            mixer.play(steady(peak, N), **options)

    return play


@pytest.mark.parametrize("peaks", [(0.1,), (0.3, 0.15), (0.5,), (0.6,), (0.85,), (0.2, 0.2, 0.2, 0.2), (1.0,)], ids=str)
def test_under_cues_full_scale_speech_stays_within_full_scale(peaks):
    gain, cue = reach(at_start(*peaks))
    assert (gain + cue)[ATTACK:].max() <= 1.0 + 1e-4


@pytest.mark.parametrize(("peak", "gain_db"), [(0.1, -6.02), (0.5, -6.02), (0.7, -10.46), (0.85, -16.48)])
def test_the_duck_is_only_as_deep_as_a_loud_cue_needs(peak, gain_db):
    gain, cue = reach(at_start(peak))
    assert 20 * np.log10(gain[5000]) == pytest.approx(gain_db, abs=0.05)
    assert cue[5000] == pytest.approx(peak, abs=1e-6)


def test_the_depth_does_not_follow_every_cue():
    """A soft cue after a loud one, while the duck holds: no pumping."""

    def play(mixer, start):
        if start in {0, 5000}:
            mixer.play(steady(0.7 if start == 0 else 0.1, 3000))

    gain, _ = reach(play)
    np.testing.assert_allclose(gain[ATTACK:7900], 0.3, atol=1e-3)


def test_after_the_duck_the_next_one_is_as_deep_as_ever():
    mixer = cues.Mixer()
    talk = np.full(4800, 0.01, dtype=np.float32)
    mixer.play(steady(0.8, 2400))
    for _ in range(6):
        mixer.mix(talk)
    mixer.play(cues.Cue(name="silent", samples=np.zeros(2400)))
    assert mixer.mix(talk)[1000] == pytest.approx(0.01 * 10 ** (-6 / 20), rel=1e-5)


def test_cues_that_leave_each_other_no_room_are_turned_down_by_at_most_12_db():
    _, alone = reach(at_start(1.0))
    assert alone[5000] == pytest.approx(0.9, abs=1e-6)
    _, both = reach(at_start(0.85, 0.85))
    assert both[5000] == 1.0


def test_a_cue_that_has_faded_leaves_its_room_to_the_next():
    decaying = cues.Cue(name="bell", samples=0.8 * np.sin(np.arange(N) * 0.3) * np.exp(-np.arange(N) / 800))

    def play(mixer, start):
        if start == 0:
            mixer.play(decaying)
        if start == 4000:
            mixer.play(steady(0.6, 4000))

    _, cue = reach(play)
    assert cue[6000] == pytest.approx(0.6, abs=1e-2)


def test_a_gain_that_is_raised_later_is_planned_too():
    voices = []

    def play(mixer, start):
        if start == 0:
            voices.append(mixer.play(steady(0.3)))
        if start == 3000:
            voices[-1].gain_db = 20.0

    gain, cue = reach(play)
    assert cue[6000] == pytest.approx(0.9, abs=1e-3)
    assert (gain + cue)[3000 + ATTACK :].max() <= 1.0 + 1e-3


def test_a_bus_that_does_not_duck_is_left_alone():
    gain, _ = reach(at_start(0.6), {"duck_db": 0.0})
    np.testing.assert_allclose(gain, 1.0, atol=1e-5)


def test_ordinary_material_is_never_cut_off():
    """The built-in cues, one a second, over speech with peaks of −1 dBFS."""
    talk = speak_voice_like("Let me look that up for you, one moment please.")
    talk = np.tile(0.891 * talk / np.abs(talk).max(), 6).astype(np.float32)
    bank, mixer = cues.load_bank(), cues.Mixer()
    names = [name for name in bank if not bank[name].loop]  # a loop that is never stopped piles up
    for second, start in enumerate(range(0, len(talk), 24000)):
        mixer.play(bank[names[second % len(names)]])
        mixer.mix(talk[start : start + 24000])
    assert mixer.stats.started > 6
    assert mixer.stats.limited_samples == 0


@pytest.mark.parametrize("gain_db", [-np.inf, -6000.0])
def test_a_silent_cue_has_room_where_the_others_leave_none(gain_db):
    mixer = cues.Mixer()
    for level in (1.0, 0.5):
        mixer.play(steady(level), gain_db=20.0)
    alone = mixer.silence(1000)
    voice = mixer.play(steady(1.0), gain_db=gain_db)
    out = mixer.silence(1000)
    assert voice.onset == 1000
    assert mixer.stats.started == 3
    assert np.abs(np.r_[alone, out]).max() <= 1.0
