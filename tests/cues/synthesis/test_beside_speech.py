"""What a recognizer and a listener make of the built-in cues: voice detection, and words under a cue."""

import asyncio
import io
from importlib.resources import files

import av
import numpy as np
import pytest
import webrtcvad
from pipecat.audio.vad.silero import SileroOnnxModel
from pystoi import stoi

import cues
import stream
from cues.meters.telephone import over_telephone
from cues.signal.pcm import pcm16_of_float
from cues.signal.resample import resample
from cues.units import db_to_gain
from stream.speech.espeak import EspeakSpeaker

RATE = 24000
BANK = cues.load_bank("", sample_rate=RATE)
LEVELS_DB = range(0, -37, -6)
MODEL = SileroOnnxModel(str(files("pipecat.audio.vad.data") / "silero_vad.onnx"))
WINDOW = {16000: 512, 8000: 256}


def over_opus(samples):
    """`samples` (24 kHz) as WebRTC has them: Opus at 24 kbit/s."""
    sent = io.BytesIO()
    with av.open(sent, "w", format="ogg") as container:
        encoder = container.add_stream("libopus", rate=48000, layout="mono")
        encoder.bit_rate = 24000
        frame = av.AudioFrame.from_ndarray(resample(samples, RATE, 48000)[None], format="flt", layout="mono")
        frame.sample_rate = 48000
        container.mux([*encoder.encode(frame), *encoder.encode(None)])
    sent.seek(0)
    with av.open(sent) as container:
        got = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    return resample(np.concatenate(got).astype(np.float32), 48000, RATE)


def as_it_is(samples):
    return samples


def over_g711(samples):
    return resample(over_telephone(samples, RATE), 8000, RATE)


def as_speech(samples, rate):
    """Silero's probability of speech in each window of `samples`, 24 kHz, at the model's `rate`."""
    heard, size = resample(samples.astype(np.float32), RATE, rate), WINDOW[rate]
    MODEL.reset_states()
    return [MODEL(heard[at : at + size], rate).item() for at in range(0, len(heard) - size + 1, size)]


def heard(cue, level_db, delay, noise_db=None):
    """A cue once, with a second before it, and noise of `noise_db` dBFS under all of it."""
    sound = np.trim_zeros(cue.samples) * db_to_gain(level_db)
    line = np.concatenate([np.zeros(RATE + delay), sound, np.zeros(RATE // 2)]).astype(np.float32)
    if noise_db is not None:
        line += np.random.default_rng(7).normal(0.0, db_to_gain(noise_db), len(line)).astype(np.float32)
    return line


@pytest.mark.parametrize("name", BANK)
@pytest.mark.parametrize(
    ("way", "noise_db"), [(way, noise_db) for way in (as_it_is, over_g711, over_opus) for noise_db in (None, -60.0)]
)
def test_silero_does_not_take_a_cue_for_speech_at_any_level(name, way, noise_db):
    delays = (0, 384)  # a window is 768 samples
    worst = max(
        max(as_speech(way(heard(BANK[name], level_db, delay, noise_db)), 16000))
        for level_db in LEVELS_DB
        for delay in delays
    )
    assert worst < 0.5


def played(name, step, n_steps):
    """A cue that the router plays after a third of the steps of `step` samples, and `sounded()` after each step."""
    mixer = cues.Mixer(RATE)
    router = stream.CueRouter(BANK, mixer, rules=stream.CueRules(tool_call=name))
    line, gate = [], []
    for number in range(n_steps):
        if number == n_steps // 3:
            router.handle(stream.ToolCallStart(tool_name="any", tool_call_id="1"))
        line.append(mixer.silence(step))
        gate.append(router.sounded())
    return np.concatenate(line), gate


@pytest.mark.parametrize("rate", WINDOW)
@pytest.mark.parametrize("name", BANK)
def test_what_silero_takes_for_speech_lies_within_the_cues_span(name, rate):
    """At 8 kHz the model takes most tones for speech."""
    line, gate = played(name, WINDOW[rate] * RATE // rate, 90)
    taken = [number for number, odds in enumerate(as_speech(line, rate)) if odds >= 0.5]
    assert [number for number in taken if not gate[number]] == []
    assert not any(gate[:30])
    assert any(gate[30:])


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("name", BANK)
def test_webrtc_takes_a_cue_for_speech_and_its_span_holds_all_of_that(name, mode):
    """Mode 3 is the strictest, and misses a soft tick now and then."""
    for frame_ms in (10, 20, 30):
        line, gate = played(name, frame_ms * RATE // 1000, 3000 // frame_ms)
        for level_db in LEVELS_DB:
            pcm = pcm16_of_float(resample(line * np.float32(db_to_gain(level_db)), RATE, 16000))
            n_bytes, detector = 2 * frame_ms * 16, webrtcvad.Vad(mode)
            frames = [pcm[at : at + n_bytes] for at in range(0, len(pcm), n_bytes)]
            taken = [number for number, frame in enumerate(frames) if detector.is_speech(frame, 16000)]
            assert [number for number in taken if not gate[number]] == []
            assert level_db or mode == 3 or 80 <= len(taken) * frame_ms <= 640


@pytest.fixture(scope="module")
def speech():
    """Speech of espeak-ng at -20 LUFS."""

    async def spoken():
        speaker = EspeakSpeaker("en-us")
        await speaker.start()
        await speaker.send(" Let me look that up in the big book of birds, and tell you all about the finches in it.")
        await speaker.finish()
        pieces = [piece.samples async for piece in speaker]
        await speaker.aclose()
        return np.concatenate(pieces)

    samples = asyncio.run(spoken())
    return (samples * db_to_gain(-20.0 - cues.integrated_lufs(samples, RATE))).astype(np.float32)


@pytest.mark.parametrize("name", BANK)
def test_words_under_a_cue_stay_intelligible(name, speech):
    """STOI (Taal et al. 2011, IEEE TASLP 19(7)) of the second in whose middle the cue begins, from anywhere."""
    scores = []
    for onset in range(RATE // 2, len(speech) - RATE // 2, RATE // 4):
        mixer = cues.Mixer(RATE)
        mixer.play(BANK[name], at=onset, loop=False)
        around = slice(onset - RATE // 2, onset + RATE // 2)
        scores.append(stoi(speech[around], mixer.mix(speech)[around], RATE))
    assert np.mean(scores) >= 0.9
