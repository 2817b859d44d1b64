"""Properties of any session: cut it as you like, mix it with any loops, alone or in a pool."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cues
from tests.support.listening import new_clicks
from tests.support.mixing_scripts import Script, clickless_script, mixing_with, noise_cue, random_script

OPTIONS = [{}, {"voices": 2, "guard": True}, {"limiter": True}, {"follow_speech": True}]


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), cut=st.integers(0, 10**6))
def test_cutting_the_input_in_another_way_changes_no_bit(options, seed, cut):
    script = random_script(seed, **options)
    if options.get("limiter"):
        script.speech = np.clip(script.speech * 1.9, -1, 1)
    whole, mixer = script.run(lambda: 1 << 30)
    rng = np.random.default_rng(cut)
    longest = int(rng.choice([40, 480, 4800]))
    parts, twin = script.run(lambda: int(rng.integers(1, longest + 1)))
    np.testing.assert_array_equal(whole, parts)
    assert mixer.stats == twin.stats
    assert mixer.position == twin.position


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_compiled_and_numpy_loops_agree_within_an_lsb_of_int16(options, seed):
    script = random_script(seed, **options)
    if options.get("limiter"):
        script.speech = np.clip(script.speech * 1.9, -1, 1)
    with mixing_with("numpy"):
        plain, mixer = script.run(lambda: 480)
    with mixing_with("compiled"):
        compiled, twin = script.run(lambda: 480)
    assert np.abs(plain - compiled).max() <= 1 / 32768
    assert mixer.stats.started == twin.stats.started
    assert mixer.stats.stolen == twin.stats.stolen


@pytest.mark.usefixtures("loops")
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
def test_a_mixer_of_a_pool_gives_the_samples_of_a_mixer_alone(seed):
    n, frame = 4, 480
    scripts = [random_script(seed + k, n_samples=50 * frame) for k in range(n)]
    aligned = [Script(s.speech, [(at // frame * frame, c) for at, c in s.commands]) for s in scripts]
    alone = [script.run(lambda: frame) for script in aligned]
    pool = cues.MixerPool(sessions=n, frame_samples=frame)
    voices: list[list[cues.Voice]] = [[] for _ in range(n)]
    out = []
    for start in range(0, 50 * frame, frame):
        for k, script in enumerate(aligned):
            for _, command in [entry for entry in sorted(script.commands, key=lambda e: e[0]) if entry[0] == start]:
                command(pool[k], voices[k])
        out.append(pool.mix(np.stack([s.speech[start : start + frame] for s in aligned])))
    together = np.concatenate(out, axis=1)
    for k, (expected, mixer) in enumerate(alone):
        np.testing.assert_array_equal(together[k], expected)
        assert pool[k].stats == mixer.stats


@pytest.mark.usefixtures("loops")
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    level=st.sampled_from([0.9, 1.0, 4.0, 1e30]),
    gain_db=st.floats(-10, 40),
    limiter=st.booleans(),
)
def test_no_sum_leaves_full_scale(seed, level, gain_db, limiter):
    rng = np.random.default_rng(seed)
    mixer = cues.Mixer(limiter=limiter)
    loud = cues.Cue(name="loud", samples=rng.choice([-1.0, 1.0], 2400))
    talk = (level * rng.choice([-1.0, 1.0], 9600)).astype(np.float32)
    if not limiter:
        talk[2400:] = 0  # idle speech is handed back unread
    for at in [0, *rng.integers(0, 1200, 10)]:
        mixer.play(loud, at=int(at), gain_db=gain_db)
    out = np.concatenate([mixer.mix(talk[k : k + 700]) for k in range(0, 2400, 700)])
    assert np.isfinite(out).all()
    assert np.abs(out).max() <= 1.0


def test_ten_thousand_random_events_make_no_click_that_the_speech_does_not_make():
    """More seeds: `python -m bench.clicks`."""
    script = clickless_script(seed=11, n_events=10_000)
    with mixing_with("compiled"):
        out, mixer = script.run(lambda: 480)
    assert mixer.stats.started > 2000
    assert mixer.stats.stolen > 100
    assert new_clicks(out, script.speech) == []


def test_frames_are_not_kept():
    mixer = cues.Mixer()
    mixer.play(noise_cue())
    frame = np.zeros(480, dtype=np.float32)
    first = mixer.mix(frame)
    kept = first.copy()
    mixer.mix(frame)
    np.testing.assert_array_equal(first, kept)


def gain_curves(seed, level):
    """The gain of the speech, while anything happens to cues that are silent; full-scale speech is its own meter."""
    rng = np.random.default_rng(seed)
    mixer, voices, out = cues.Mixer(voices=2), [], []
    for _ in range(40):
        kind = rng.random()
        if kind < 0.35:
            quiet = cues.Cue(name="silent", samples=np.zeros(int(rng.integers(1, 6000))))
            placement = str(rng.choice(["overlay", "replace", "in_pause"]))
            voices.append(mixer.play(quiet, placement=placement, loop=bool(rng.random() < 0.1)))
        elif kind < 0.5 and voices:
            voices[rng.integers(len(voices))].stop(float(rng.uniform(0, 50)))
        elif kind < 0.65:
            mixer.release(float(rng.choice([5, 30, 250])))
        elif kind < 0.8:
            mixer.resume()
        out.append(np.array(mixer.mix(np.full(int(rng.integers(1, 700)), level, dtype=np.float32))))
    return np.concatenate(out) / level


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("level", [0.4, 1.0])
def test_the_gain_of_the_speech_stays_within_its_bounds_and_bends_no_more_than_a_fade(level):
    for seed in range(40):
        gain = gain_curves(seed, level)
        assert gain.min() >= -2e-4
        assert gain.max() <= 1 + 2e-4
        assert np.abs(np.diff(gain.astype(np.float64), 2)).max() <= 4.1e-4


@pytest.mark.usefixtures("loops")
def test_the_gain_of_a_voice_bends_no_more_than_a_fade():
    steady = cues.Cue(name="steady", samples=np.full(200_000, 0.1))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        mixer = cues.Mixer(voices=1)
        voice = mixer.play(steady, loop=True)
        out = [mixer.silence(2000)]
        for _ in range(20):
            kind = rng.random()
            if kind < 0.5:
                voice.gain_db = float(rng.uniform(-30, 0))
            elif kind < 0.7:
                voice.stop(float(rng.uniform(0, 50)))
            elif kind < 0.8:
                mixer.release(float(rng.uniform(0, 50)))
            out.append(mixer.silence(int(rng.integers(1, 900))))
        gain = np.concatenate(out).astype(np.float64) / 0.1
        assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4


@pytest.mark.parametrize("after", [100, 240, 380, 5000])
def test_a_long_fade_after_a_short_ramp_neither_overshoots_nor_keeps_anybody_waiting(after):
    """A release of 250 ms in the 20 ms in which a duck goes down, or the 300 ms in which it comes back."""
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="silent", samples=np.zeros(24000)))
    ones = np.full(12000, 1.0, dtype=np.float32)
    out = [mixer.mix(ones[:after])]
    if after > 480:
        voice.stop()
        out.append(mixer.mix(ones[:7000]))
    mixer.release(fade_ms=250)
    out.append(mixer.mix(ones))
    gain = np.concatenate(out)
    assert gain.min() >= -1e-6
    assert gain.max() <= 1 + 1e-6
    assert not gain[-12000 + 6000 + 480 :].any()


def storm(seed, longest, n_samples=14_400):
    """Commands at the same and at neighbouring samples, to cues of any length, over steady speech."""
    rng = np.random.default_rng(seed)
    mixer, voices, out = cues.Mixer(voices=1 + seed % 4, gap_limit_ms=float(rng.choice([0, 50, 1000]))), [], []
    sounds = [cues.Cue(name="steady", samples=np.full(int(n), 0.1)) for n in rng.integers(1, 7000, 6)]
    cuts = np.random.default_rng([seed, longest])
    talk = np.full(n_samples, 0.3, dtype=np.float32)
    stops = np.sort(np.append(rng.integers(0, n_samples, 40), [0, 0, 4800, 4800, 4800, n_samples])).tolist()
    position = 0
    for stop in stops:
        while position < stop:
            n = min(int(cuts.integers(1, longest + 1)), stop - position)
            out.append(np.array(mixer.mix(talk[position : position + n])))
            position += n
        kind, which, fade = rng.integers(12), int(rng.integers(60)), float(rng.choice([5, 10, 30, 250, 1000]))
        if kind < 6:
            at = mixer.position + int(rng.integers(-3000, 5000)) if kind < 2 else None
            placement = ["overlay", "replace", "in_pause"][which % 3]
            cue, gain_db = sounds[which % 6], float(rng.uniform(-30, 3))
            voices.append(
                mixer.play(
                    cue, at=at, gain_db=gain_db, loop=which % 7 == 0, priority=which % 4 // 2, placement=placement
                )
            )
        elif kind < 8 and voices:
            voices[which % len(voices)].stop(fade)
        elif kind == 8 and voices:
            voices[which % len(voices)].gain_db = -fade / 10
        elif kind == 9:
            mixer.release(fade)
        elif kind == 10:
            mixer.resume()
        else:
            mixer.release(fade)
            mixer.resume()
            mixer.release(5)
    return np.concatenate(out), mixer.stats


@pytest.mark.usefixtures("loops")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(seed=60)
@given(seed=st.integers(0, 10**6))
def test_a_storm_of_commands_gives_the_same_for_any_cut(seed):
    whole, stats = storm(seed, 100_000)
    parts, other_stats = storm(seed, 700)
    np.testing.assert_array_equal(whole, parts)
    assert stats == other_stats


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("often", [False, True], ids=["seldom planned", "often planned"])
def test_a_cue_that_ended_takes_no_room_from_one_whose_gain_is_raised(often):
    """Whether the mixer has met its end yet or not."""
    mixer = cues.Mixer()
    loud = mixer.play(cues.Cue(name="loud", samples=np.full(48_000, 0.85)))
    soft = mixer.play(cues.Cue(name="soft", samples=np.full(48_000, 0.2)))
    mixer.silence(4800)
    loud.stop()
    mixer.silence(960)
    if often:
        mixer._scheduler.plan()
    soft.gain_db = 12.0
    assert mixer.silence(960)[-1] == pytest.approx(0.2 * 10 ** (12 / 20), rel=1e-5)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("length", [200, 493, 700, 961, 1440])
def test_a_short_cue_that_replaces_speech_in_a_duck_gives_the_same_for_any_cut(length):
    """The speech should be back at three levels before the ramp that takes it away has come to rest."""
    told = []
    for cut in (24_000, 439, 31):
        mixer, out = cues.Mixer(), []
        mixer.play(cues.Cue(name="duck", samples=np.zeros(300)))
        mixer.play(cues.Cue(name="replace", samples=np.zeros(length)), placement="replace", at=4850)
        while mixer.position < 24_000:
            out.append(np.array(mixer.mix(np.ones(min(cut, 24_000 - mixer.position), dtype=np.float32))))
        told.append(np.concatenate(out))
    np.testing.assert_array_equal(told[0], told[1])
    np.testing.assert_array_equal(told[0], told[2])
    assert np.abs(np.diff(told[0].astype(np.float64), 2)).max() <= 6.5e-4
