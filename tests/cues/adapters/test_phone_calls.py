"""What the caller hears on a telephone line: the speech at its pace, cues within the lead, the end at a barge-in."""

from types import SimpleNamespace

import numpy as np
import pytest

from cues import Cue
from cues.signal.g711 import bytes_of_samples, samples_of_bytes
from cues.signal.resample import resample
from stream.events import StreamFailed, ToolCallStart, ToolResult
from stream.routing.rules import CueRules
from tests.support.listening import first_sound, last_sound, new_clicks, speech, steady_voice
from tests.support.phone_calls import RATE, asterisk_call, twilio_call

STEP = 0.01  # µ-law's steps are that large at the level of speech.
LINES = {
    "Twilio": SimpleNamespace(
        heard=lambda script, **options: twilio_call(script, **options).signal(),
        code=lambda x: samples_of_bytes(bytes_of_samples(x)), off=1e-3, step=STEP,
        pace_s=0.06, lead_s=0.11, silent_s=0.04,
    ),
    "Asterisk": SimpleNamespace(
        heard=lambda script, **options: asterisk_call(script, **options)[0].signal(),
        code=lambda x: x, off=2 / 32768, step=5e-5,
        pace_s=0.1, lead_s=0.06, silent_s=0.08,
    ),
}  # fmt: skip
pytestmark = pytest.mark.parametrize("line", LINES.values(), ids=LINES)


def test_the_caller_hears_all_of_the_speech_at_its_pace(line):
    x, played_s = speech(), []

    async def script(phone, clock):
        phone.push(x, 24000)
        phone.end()
        await phone.played()
        played_s.append(clock.now())

    at_8k = resample(x, 24000, RATE)
    heard = line.heard(script)[: len(at_8k)]
    assert np.abs(heard - line.code(at_8k)).max() < line.off
    assert played_s[0] == pytest.approx(len(x) / 24000, abs=line.pace_s)


def test_who_waits_for_the_end_of_a_call_hears_the_whole_error_that_follows_the_words(line):
    async def script(phone, clock):
        phone.push(steady_voice(1.0), 24000)
        phone.end()
        phone.router.handle(StreamFailed("no"))
        await phone.played()
        phone.close()

    def heard(bank):
        return line.heard(script, bank=bank, rules=CueRules(placement="after_words", working=None))

    error = Cue(name="error", samples=steady_voice(0.5, level=0.1), sample_rate=24000)
    with_cue, without = heard({"error": error}), heard({})
    assert len(with_cue) - len(without) >= 0.45 * RATE


@pytest.mark.parametrize("known_s", [1.001, 1.013])
def test_a_cue_over_speech_is_heard_within_the_lead_and_a_frame(line, known_s):
    async def script(phone, clock):
        phone.push(steady_voice(3.0), 24000)
        await clock.sleep_until(known_s)
        phone.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(2.5)

    with_cue, without = line.heard(script), line.heard(script, bank={})
    n = min(len(with_cue), len(without))
    onset = first_sound(with_cue[:n] - without[:n], 2 * line.step)
    assert known_s * RATE <= onset <= (known_s + line.lead_s) * RATE


@pytest.mark.parametrize("moment_s", [0.5, 0.513, 1.1, 4.6], ids=["speech", "in a frame", "cue", "waiting sound"])
def test_a_barge_in_is_silent_soon_and_does_not_click(line, moment_s):
    async def script(phone, clock):
        phone.push(steady_voice(0.9 if moment_s > 2 else 10.0), 24000)
        phone.end()
        await clock.sleep_until(min(1.0, moment_s))
        phone.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep_until(moment_s)
        phone.barge_in()
        phone.barge_in()  # A second one adds nothing.
        await clock.sleep(1.0)
        late = ToolResult(tool_name="read_file", tool_call_id="1", is_error=True, content="")
        phone.router.handle(late)  # Its turn is over.
        await clock.sleep(1.0)

    heard = line.heard(script)
    assert last_sound(heard, 0.0) <= (moment_s + line.silent_s) * RATE
    if moment_s < 2:
        assert last_sound(heard, STEP) > moment_s * RATE
        assert new_clicks(heard, np.zeros_like(heard), RATE) == []


@pytest.mark.parametrize("moment_s", [1.0, 1.001, 1.002, 1.003])
def test_a_barge_in_into_an_answer_that_followed_the_fade_of_another_does_not_click(line, moment_s):
    tone = (0.3 * np.sin(2 * np.pi * 180 * np.arange(48000) / 24000)).astype(np.float32)

    async def script(phone, clock):
        phone.push(tone, 24000)
        await clock.sleep_until(0.5)
        phone.barge_in()
        phone.push(tone, 24000)
        await clock.sleep_until(moment_s)
        phone.barge_in()
        await clock.sleep(0.3)

    heard = line.heard(script, bank={})
    assert np.abs(np.diff(heard)).max() < 0.1
    assert last_sound(heard, 0.0) <= (moment_s + line.silent_s) * RATE


def test_after_a_barge_in_the_next_answer_is_heard_from_its_first_word(line):
    x, at_s = speech("Papa, hear me."), []

    async def script(phone, clock):
        phone.push(steady_voice(5.0), 24000)
        await clock.sleep(1.0)
        phone.barge_in()
        await clock.sleep(0.2)
        at_s.append(clock.now())
        phone.push(x, 24000)
        phone.end()
        await phone.played()

    after, at_8k = line.heard(script)[round(at_s[0] * RATE) :], resample(x, 24000, RATE)
    assert len(after) == pytest.approx(len(at_8k), abs=0.03 * RATE)
    assert np.abs(after).max() == pytest.approx(np.abs(at_8k).max(), rel=0.05)
