"""What the mixer does with one cue, one voice, one command."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cues
from cues.mixing.sounds import prepare
from tests.cues.loops_fixture import loops  # noqa: F401  (a fixture)
from tests.cues.mixing_scripts import RATE, noise_cue, speech, tone

pytestmark = pytest.mark.usefixtures("loops")

DUCK = 10 ** (-6 / 20)


def zeros(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.float32)


def run(mixer: cues.Mixer, samples: np.ndarray, frame: int = 480) -> np.ndarray:
    return np.concatenate([mixer.mix(samples[k : k + frame]).copy() for k in range(0, len(samples), frame)])


# Idle.


def test_an_idle_mixer_returns_the_frame_itself():
    mixer = cues.Mixer()
    frame = speech(480)
    assert mixer.mix(frame) is frame
    assert mixer.position == 480


def test_an_idle_mixer_returns_the_bytes_themselves():
    data = b"\x01\x02" * 480
    assert cues.Mixer().mix_pcm16(data) is data


def test_an_idle_mixer_writes_to_out_when_asked():
    frame, out = speech(480), zeros(480)
    assert cues.Mixer().mix(frame, out=out) is out
    np.testing.assert_array_equal(out, frame)


def test_after_the_last_ramp_the_mixer_is_idle_again():
    mixer = cues.Mixer()
    mixer.play(tone())
    run(mixer, zeros(24000))
    frame = zeros(480)
    assert mixer.mix(frame) is frame
    assert not mixer.active


def test_idle_does_not_read_the_frame_and_a_guard_does():
    bad = np.array([0.1, np.nan, np.inf, 0.2], dtype=np.float32)
    assert cues.Mixer().mix(bad) is bad
    guarded = cues.Mixer(guard=True)
    np.testing.assert_array_equal(guarded.mix(bad), np.array([0.1, 0, 0, 0.2], dtype=np.float32))
    assert guarded.stats.nonfinite_samples == 2
    clean = zeros(4)
    assert guarded.mix(clean) is clean


# Time.


@pytest.mark.parametrize("at", [0, 1, 479, 480, 481, 1234])
def test_a_scheduled_cue_begins_at_its_sample(at):
    mixer = cues.Mixer()
    cue = noise_cue()
    mixer.play(cue, at=at)
    out = run(mixer, zeros(6000))
    assert np.flatnonzero(out)[0] == at
    np.testing.assert_array_equal(out[at : at + len(cue)], prepare(cue, RATE).samples)


def test_a_cue_with_edges_of_its_own_is_played_as_it_is():
    mixer = cues.Mixer()
    cue = tone()
    mixer.play(cue, at=100)
    out = run(mixer, zeros(6000))
    np.testing.assert_array_equal(out[100 : 100 + len(cue)], cue.samples)


def test_a_cue_posted_before_mix_sounds_inside_that_frame():
    mixer = cues.Mixer()
    mixer.mix(zeros(480))
    mixer.play(noise_cue())
    assert mixer.active
    assert mixer.mix(zeros(480))[0] != 0


def test_a_cue_whose_time_has_passed_starts_at_once_and_is_counted():
    mixer = cues.Mixer()
    mixer.mix(zeros(480))
    mixer.play(noise_cue(), at=100)
    assert mixer.mix(zeros(480))[0] != 0
    assert (mixer.stats.started, mixer.stats.late) == (1, 1)
    assert mixer.stats["late"] == 1
    assert dict(mixer.stats)["started"] == 1


def test_a_cue_in_the_far_future_waits():
    mixer = cues.Mixer()
    voice = mixer.play(tone(), at=10**15)
    frame = zeros(480)
    assert mixer.mix(frame) is frame
    assert mixer.active
    assert voice.active


def test_silence_moves_the_session_on_and_is_counted():
    mixer = cues.Mixer()
    mixer.play(noise_cue(), at=480)
    assert not mixer.silence(480).any()
    assert mixer.silence(480).any()
    assert (mixer.position, mixer.stats.silence_frames) == (960, 2)


# The speech under a cue.


def test_speech_is_ducked_by_6_db_held_and_brought_back():
    mixer = cues.Mixer()
    ones = np.full(48000, 0.5, dtype=np.float32)
    mixer.play(cues.Cue(name="silent", samples=np.zeros(4800)), at=4800)
    gain = run(mixer, ones) / 0.5
    assert (gain[:4800] == 1).all()
    duck_end = 9600 + round(0.2 * RATE)
    np.testing.assert_allclose(gain[4800 + 480 : duck_end], DUCK, atol=1e-6)
    assert (gain[duck_end + round(0.3 * RATE) :] == 1).all()
    assert np.abs(np.diff(gain, 2)).max() < 1e-4


def test_two_cues_in_a_row_do_not_pump():
    mixer = cues.Mixer()
    quiet = cues.Cue(name="silent", samples=np.zeros(2400))
    for at in (0, 2400 + 4000):
        mixer.play(quiet, at=at)
    gain = run(mixer, np.ones(24000, dtype=np.float32) * 0.5) / 0.5
    np.testing.assert_allclose(gain[480 : 6400 + 2400], DUCK, atol=1e-6)


def test_a_stopped_voice_releases_its_duck():
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="silent", samples=np.zeros(96000)))
    ones = np.full(4800, 0.5, dtype=np.float32)
    run(mixer, ones)
    voice.stop()
    gain = run(mixer, np.tile(ones, 5)) / 0.5
    assert gain[-1] == 1
    assert np.abs(np.diff(gain, 2)).max() < 1e-4


def test_a_duck_begins_again_from_where_its_release_was():
    mixer = cues.Mixer()
    quiet = cues.Cue(name="silent", samples=np.zeros(2400))
    mixer.play(quiet, at=0)
    mixer.play(quiet, at=2400 + 4800 + 2000)
    gain = run(mixer, np.full(24000, 0.5, dtype=np.float32)) / 0.5
    assert gain[2400 + 4800 : 9200].max() < 0.7
    assert np.abs(np.diff(gain, 2)).max() < 1e-4
    assert gain.min() > DUCK - 1e-3


def test_replace_crossfades_speech_out_and_back_at_equal_power():
    mixer = cues.Mixer()
    n, fade = 9600, round(0.02 * RATE)
    steady = cues.Cue(name="steady", samples=np.full(n, 0.25))
    mixer.play(steady, placement="replace", at=1000)
    without = run(mixer, zeros(24000)) / 0.25
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="silent", samples=np.zeros(n)), placement="replace", at=1000)
    gain = run(mixer, np.full(24000, 0.5, dtype=np.float32)) / 0.5
    assert (gain[1000 + fade : 1000 + n - fade] == 0).all()
    np.testing.assert_allclose(gain[1000 : 1000 + n] ** 2 + without[1000 : 1000 + n] ** 2, 1.0, atol=1e-3)
    assert np.abs(np.diff(gain, 2)).max() < 6.5e-4
    assert (gain[1000 + n :] == 1).all()


def test_gap_waits_for_the_pause_in_the_speech():
    mixer = cues.Mixer()
    talk = speech(24000)
    talk[:] = np.where(np.arange(24000) < 12000, 0.3 * np.sin(np.arange(24000)), 0)
    mixer.play(noise_cue(), placement="gap")
    out = run(mixer, talk, 123)
    assert np.flatnonzero(out[12000:])[0] == 80 * 24


def test_gap_gives_up_waiting_at_its_limit():
    mixer = cues.Mixer(gap_limit_ms=300)
    mixer.play(cues.Cue(name="steady", samples=np.full(960, 0.2)), placement="gap")
    talk = (0.3 * np.sin(np.arange(12000))).astype(np.float32)
    out = run(mixer, talk)
    np.testing.assert_array_equal(out[:7200], talk[:7200])
    assert mixer.stats.started == 1
    assert not np.array_equal(out[7200:7300], talk[7200:7300])


# Barge-in.


def test_release_fades_everything_and_cancels_what_was_scheduled():
    mixer = cues.Mixer()
    talk = np.full(9600, 0.3, dtype=np.float32)
    playing = mixer.play(tone(48000))
    waiting = mixer.play(tone(), at=4000)
    run(mixer, talk[:960])
    mixer.release(fade_ms=30)
    out = run(mixer, talk)
    assert np.abs(out[:360]).max() > 0.01
    assert not out[720:].any()
    assert not playing.active
    assert not waiting.active
    assert not mixer.active


@pytest.mark.parametrize("fade_ms", [-3, 0, 5, 30, 250, 4000])
def test_a_release_takes_from_5_to_250_ms(fade_ms):
    mixer = cues.Mixer()
    mixer.release(fade_ms=fade_ms)
    gain = run(mixer, np.full(12000, 0.5, dtype=np.float32)) / 0.5
    assert np.flatnonzero(gain)[-1] == pytest.approx(min(max(fade_ms, 5), 250) * 24, abs=2)
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4


def test_silence_lasts_until_resume():
    mixer = cues.Mixer()
    mixer.release()
    talk = np.full(4800, 0.3, dtype=np.float32)
    run(mixer, talk)
    assert not run(mixer, talk).any()
    mixer.resume()
    out = run(mixer, talk)
    np.testing.assert_array_equal(out[480:], talk[480:])
    assert np.abs(np.diff(out / 0.3, 2)).max() < 4e-4


def test_silence_lasts_until_the_next_cue():
    mixer = cues.Mixer()
    mixer.release()
    talk = np.full(4800, 0.3, dtype=np.float32)
    run(mixer, talk)
    mixer.play(cues.Cue(name="silent", samples=np.zeros(4800)))
    np.testing.assert_allclose(run(mixer, talk)[480:], 0.3 * DUCK, atol=1e-6)


def test_a_resume_in_the_middle_of_a_release_does_not_click():
    mixer = cues.Mixer()
    talk = np.full(4800, 0.5, dtype=np.float32)
    mixer.release(fade_ms=5)
    head = run(mixer, talk[:60])
    mixer.resume()
    gain = np.concatenate([head, run(mixer, talk)]) / 0.5
    assert gain[-1] == 1
    assert gain.min() >= 0
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4


# Voices.


def test_stop_fades_over_the_time_that_is_asked_for():
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="steady", samples=np.full(48000, 0.25)))
    run(mixer, zeros(4800))
    voice.stop(fade_ms=20)
    gain = run(mixer, zeros(4800)) / 0.25
    assert np.flatnonzero(gain)[-1] == pytest.approx(480, abs=3)
    assert np.abs(np.diff(np.concatenate([[1.0], gain]), 2)).max() < 4.1e-4
    assert not voice.active


def test_stop_in_the_middle_of_a_change_of_gain_does_not_click():
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="steady", samples=np.full(48000, 0.25)))
    out = [run(mixer, zeros(4800))]
    voice.gain_db = -12
    out.append(run(mixer, zeros(120)))
    voice.stop(fade_ms=5)
    out.append(run(mixer, zeros(2400)))
    gain = np.concatenate(out)[1000:] / 0.25
    assert not gain[-2000:].any()
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4


def test_gain_changes_are_ramps_and_the_last_one_wins():
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="steady", samples=np.full(48000, 0.25)), gain_db=-6)
    out = [run(mixer, zeros(2400))]
    for gain_db in (-20.0, 0.0, -3.0):
        voice.gain_db = gain_db
        out.append(run(mixer, zeros(100)))
    out.append(run(mixer, zeros(2400)))
    gain = np.concatenate(out)[1000:] / 0.25
    assert gain[-1] == pytest.approx(10 ** (-3 / 20), abs=1e-6)
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4
    assert voice.gain_db == -3.0


def test_a_loop_has_no_seam_and_goes_on():
    mixer = cues.Mixer()
    t = np.arange(2400)
    seamless = cues.Cue(name="hum", samples=0.2 * np.sin(2 * np.pi * 200 * t / RATE))
    voice = mixer.play(seamless, loop=True)
    out = run(mixer, zeros(24000))
    expected = 0.2 * np.sin(2 * np.pi * 200 * np.arange(24000) / RATE)
    np.testing.assert_allclose(out[240:], expected[240:], atol=1e-5)
    voice.stop()
    run(mixer, zeros(4800))
    assert not mixer.active


def test_a_loop_that_does_not_fit_gets_a_crossfaded_seam():
    mixer = cues.Mixer()
    saw = cues.Cue(name="saw", samples=0.2 * np.sin(2 * np.pi * 201.3 * np.arange(2400) / RATE))
    mixer.play(saw, loop=True)
    out = run(mixer, zeros(24000))
    assert np.abs(np.diff(out, 2)).max() < 1.5 * 0.2 * (2 * np.pi * 201.3 / RATE) ** 2


def test_the_least_important_and_then_the_oldest_voice_is_stolen():
    mixer = cues.Mixer(voices=2)
    long = tone(24000)
    important = mixer.play(long, priority=1)
    first = mixer.play(long)
    mixer.mix(zeros(480))
    second = mixer.play(long)
    mixer.mix(zeros(480))
    assert (important.active, first.active, second.active) == (True, False, True)
    refused = mixer.play(long, priority=-1)
    mixer.mix(zeros(480))
    assert not refused.active
    assert (mixer.stats.started, mixer.stats.stolen) == (3, 2)


def test_a_stolen_voice_fades_in_5_ms():
    mixer = cues.Mixer(voices=1)
    steady = cues.Cue(name="steady", samples=np.full(24000, 0.25))
    mixer.play(steady)
    run(mixer, zeros(4800))
    mixer.play(cues.Cue(name="silent", samples=np.zeros(4800)))
    gain = run(mixer, zeros(4800)) / 0.25
    assert np.flatnonzero(gain)[-1] == pytest.approx(120, abs=3)
    assert np.abs(np.diff(np.concatenate([[1.0, 1.0], gain]), 2)).max() <= 4.1e-4


def test_the_tails_of_many_stolen_voices_fade_together():
    mixer = cues.Mixer(voices=1)
    steady = cues.Cue(name="steady", samples=np.full(24000, 0.1))
    out = []
    for _ in range(6):
        mixer.play(steady)
        out.append(run(mixer, zeros(50)))
    assert np.abs(np.diff(np.concatenate(out) / 0.1, 2)).max() < 6 * 4.1e-4
    assert mixer.stats.stolen == 5


def test_a_cue_of_another_rate_is_converted():
    mixer = cues.Mixer()
    mixer.play(tone(7200, 660.0, rate=48000))
    out = run(mixer, zeros(4800))
    assert np.abs(out[:3600] - tone(3600, 660.0).samples).max() < 2e-3


# Samples that are none, and sums that are too large.


def test_bad_samples_are_silenced_and_counted_while_anything_sounds():
    mixer = cues.Mixer()
    cue = tone(4800)
    mixer.play(cue)
    bad = np.full(960, np.nan, dtype=np.float32)
    bad[500] = -np.inf
    out = mixer.mix(bad)
    np.testing.assert_array_equal(out, cue.samples[:960])
    assert mixer.stats.nonfinite_samples == 960


def test_output_never_leaves_full_scale_whatever_comes():
    mixer = cues.Mixer(voices=8)
    loud = cues.Cue(name="loud", samples=np.full(4800, 1.0))
    for _ in range(8):
        mixer.play(loud, gain_db=20)
    for level in (1.0, 3e38, 100.0):
        out = mixer.mix(np.full(1200, level, dtype=np.float32))
        assert np.isfinite(out).all()
        assert np.abs(out).max() <= 1.0
    assert mixer.stats.limited_samples > 0


# Buffers and bytes.


def test_out_may_be_the_frame_itself():
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue())
    frame = speech(480)
    expected = twin.mix(frame)
    assert expected is not frame
    assert mixer.mix(frame, out=frame) is frame
    np.testing.assert_array_equal(frame, expected)


def test_overlapping_buffers_are_handled():
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue())
        each.mix(zeros(10))
    store = speech(500)
    expected = twin.mix(store[:480].copy())
    np.testing.assert_array_equal(mixer.mix(store[:480], out=store[20:]), expected)


def test_bytes_are_mixed_as_floats_are():
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue(), at=100)
    pcm = (speech(4800) * 32767).astype("<i2")
    floats = twin.mix(pcm.astype(np.float32) / 32768)
    out = np.frombuffer(mixer.mix_pcm16(pcm.tobytes()), dtype="<i2")
    assert np.abs(out - floats * 32768).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda data: np.frombuffer(data, dtype="<i2")])
def test_anything_with_a_buffer_is_taken_for_bytes(kind):
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue())
    data = bytes(960)
    assert mixer.mix_pcm16(kind(data)) == twin.mix_pcm16(data)


def test_a_huge_frame_is_mixed_like_many_small_ones():
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue(), at=700_000)
    talk = speech(1_000_000)
    np.testing.assert_array_equal(mixer.mix(talk), run(twin, talk, 4800))


@pytest.mark.parametrize("convert", [np.float64, np.float16, list])
def test_other_floats_are_converted(convert):
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue())
    frame = speech(480).astype(np.float16)
    given = frame.tolist() if convert is list else frame.astype(convert)
    out = mixer.mix(given)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, twin.mix(frame.astype(np.float32)))


def test_a_frame_with_strides_is_mixed():
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue())
    frame = speech(960)[::2]
    np.testing.assert_array_equal(mixer.mix(frame), twin.mix(frame.copy()))


def test_an_empty_frame_changes_nothing():
    mixer = cues.Mixer()
    mixer.play(noise_cue())
    assert len(mixer.mix(zeros(0))) == 0
    assert mixer.mix_pcm16(b"") == b""
    assert len(mixer.silence(0)) == 0
    assert mixer.position == 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: m.mix(np.zeros((2, 480), dtype=np.float32)), ValueError, "shape"),
        (lambda m: m.mix(np.zeros(480, dtype=np.int16)), TypeError, "mix_pcm16"),
        (lambda m: m.mix(zeros(480), out=zeros(479)), ValueError, "shape"),
        (lambda m: m.mix(zeros(480), out=np.zeros(480)), TypeError, "float32"),
        (lambda m: m.mix_pcm16(b"123"), ValueError, "even"),
        (lambda m: m.mix_pcm16("text"), TypeError, "bytes"),
        (lambda m: m.silence(-1), ValueError, "n_samples"),
        (lambda m: m.play("tool_call"), TypeError, "cues.Cue"),
        (lambda m: m.play(tone(), gain_db=float("nan")), ValueError, "gain_db"),
        (lambda m: m.play(tone(), gain_db="loud"), TypeError, "gain_db"),
        (lambda m: m.play(tone(), at=1.5), TypeError, "at"),
        (lambda m: m.play(tone(), at=1 << 62), ValueError, "at"),
        (lambda m: m.play(tone(), placement="under"), ValueError, "overlay"),
        (lambda m: m.release(fade_ms=float("nan")), ValueError, "fade_ms"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_mistake_is_named_and_the_session_goes_on(call, error, words):
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin):
        each.play(noise_cue(), at=100)
        each.mix(zeros(200))
    with pytest.raises(error, match=words) as caught:
        call(mixer)
    assert isinstance(caught.value, cues.CueError)
    np.testing.assert_array_equal(mixer.mix(zeros(480)), twin.mix(zeros(480)))


@pytest.mark.parametrize(
    "options",
    [{"sample_rate": 0}, {"sample_rate": 24000.5}, {"voices": 0}, {"duck_db": 3}, {"gap_limit_ms": float("nan")}],
    ids=str,
)
def test_a_mixer_that_cannot_be_is_refused(options):
    with pytest.raises(cues.CueError, match=next(iter(options))):
        cues.Mixer(**options)


def test_too_many_waiting_cues_are_refused():
    mixer = cues.Mixer()
    cue = tone()
    for _ in range(65_536):
        mixer.play(cue, at=10**9)
    with pytest.raises(cues.CueError, match="wait"):
        mixer.play(tone())


# The end, and other threads.


def test_a_closed_mixer_lets_frames_pass_and_plays_nothing():
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="steady", samples=np.full(24000, 0.25)))
    run(mixer, zeros(4800))
    mixer.close()
    with pytest.raises(cues.CueError, match="closed"):
        mixer.play(tone())
    gain = run(mixer, zeros(24000)) / 0.25
    assert np.abs(np.diff(np.concatenate([[1.0], gain]), 2)).max() <= 4.1e-4
    frame = zeros(480)
    assert mixer.mix(frame) is frame
    mixer.close()


def test_commands_from_other_threads_all_arrive():
    mixer = cues.Mixer()
    short = tone(300)
    finished = []

    def post() -> None:
        try:
            for _ in range(200):
                voice = mixer.play(short)
                voice.gain_db = -10
                voice.stop()
        finally:
            finished.append(True)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    talk = speech(480)
    while len(finished) < 4 or mixer.active:
        out = mixer.mix(talk)
        assert np.abs(out).max() <= 1.0
    for thread in threads:
        thread.join()
    mixer.play(short)
    mixer.mix(talk)
    assert mixer.stats.started > 0


def test_eight_voices_take_at_most_384_bytes_and_with_a_limiter_one_kibibyte():
    assert cues.Mixer().state_bytes <= 384
    assert cues.Mixer(limiter=True, follow_speech=True).state_bytes <= 1024
