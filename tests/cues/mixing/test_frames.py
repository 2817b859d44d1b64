"""Frames that a mixer takes, and its answer to everything else."""

import numpy as np
import pytest

import cues
from cues._kernels import layout
from tests.support.mixing_scripts import noise_cue, run, speech, tone, zeros

pytestmark = pytest.mark.usefixtures("loops")


def test_bad_samples_are_silenced_and_counted_while_anything_sounds():
    mixer = cues.Mixer()
    cue = tone(4800)
    mixer.play(cue)
    bad = np.full(960, np.nan, dtype=np.float32)
    bad[500] = -np.inf
    out = mixer.mix(bad)
    np.testing.assert_array_equal(out, cue.samples[:960])
    assert mixer.stats.nonfinite_samples == 960


@pytest.mark.parametrize("sample_rate", [24000, 48000])
@pytest.mark.parametrize("limiter", [False, True])
def test_cues_that_no_float_can_add_up_give_no_sample_that_is_none(limiter, sample_rate):
    mixer = cues.Mixer(limiter=limiter)
    for level in (3e38, -3e38, 3e38):
        mixer.play(cues.Cue(name="huge", samples=np.full(4800, level), sample_rate=sample_rate), gain_db=40)
    with np.errstate(all="raise", under="ignore"):
        out = run(mixer, np.full(4800, 0.1, dtype=np.float32))
    assert np.isfinite(out).all()
    assert np.abs(out).max() <= 1.0


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


@pytest.mark.parametrize("sounding", [False, True], ids=["idle", "sounding"])
@pytest.mark.parametrize("dtype", ["f4", "f8", ">i2", "u2", "i4"])
def test_an_array_that_holds_no_int16_is_never_read_as_if_it_did(dtype, sounding):
    mixer = cues.Mixer()
    if sounding:
        mixer.play(noise_cue())
    with pytest.raises(cues.CueTypeError, match=rf"dtype {np.dtype(dtype)}; it must be int16 .*`mix`"):
        mixer.mix_pcm16(np.ones(480, dtype=dtype))
    assert mixer.position == 0


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
        (lambda m: m.silence(-1.0), TypeError, r"n_samples is -1.0; it must be a whole number from 0 on$"),
        (lambda m: m.play("agent"), TypeError, r"^cue is 'agent'; it must be a cues.Cue, such as bank\['agent'\]$"),
        (
            lambda m: m.play(zeros(24000)),
            TypeError,
            r"^cue is an array of float32, shape \(24000,\); .*cues.Cue\(name=",
        ),
        (lambda m: m.play([0.0] * 24000), TypeError, r"^cue is \[0.0, .{,40}; it must be a cues.Cue"),
        (lambda m: m.play(tone(), gain_db=float("nan")), ValueError, "gain_db"),
        (lambda m: m.play(tone(), gain_db="loud"), TypeError, "gain_db is 'loud'; it must be a number up to 40$"),
        (lambda m: m.play(tone(), gain_db=41), ValueError, "gain_db is 41; it must be up to 40$"),
        (lambda m: m.play(tone(), gain_db=10**400), ValueError, "gain_db"),
        (lambda m: m.play(tone(), at=1.5), TypeError, r"at is 1.5; it must be a whole number$"),
        (lambda m: m.play(tone(), at=1 << 62), ValueError, r"at is 4611686018427387904; .* up to 2305843009213693952$"),
        (lambda m: m.play(tone(), placement="under"), ValueError, "overlay"),
        (lambda m: m.release(fade_ms=float("nan")), ValueError, "fade_ms is nan; it must be a number$"),
        (lambda m: m.release(fade_ms="soon"), TypeError, "fade_ms is 'soon'; it must be a number$"),
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
    [
        {"sample_rate": 0},
        {"sample_rate": 24000.5},
        {"voices": 0},
        {"voices": True},
        {"duck_db": 3},
        {"duck_db": "-3"},
        {"gap_limit_ms": float("nan")},
    ],
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


@pytest.mark.parametrize("counter", ["limited_samples", "nonfinite_samples"])
def test_a_counter_goes_on_beyond_32_bits(counter):
    """A session that counts 2**30 samples at a time, which a kernel's counter holds twice at most."""
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="loud", samples=np.full(4800, 1.0)), loop=True)
    at = {"limited_samples": layout.LIMITED_I32, "nonfinite_samples": layout.NONFINITE_I32}[counter]
    frame = np.full(480, 30.0 if counter == "limited_samples" else np.nan, dtype=np.float32)
    mixer.mix(frame)
    expected = getattr(mixer.stats, counter)
    for _ in range(5):
        mixer._row.ints[at] += (1 << 30) - 480
        expected += (1 << 30) - 480
        for _ in range(2):
            mixer.mix(frame)
            expected += 480
    assert expected > 1 << 32
    assert getattr(mixer.stats, counter) == expected
