"""The worklet of `cues live` on a clock of the test: which frames are heard, and when the buffer grows."""

from pathlib import Path

import pytest

from cues.cli.live import browser as package

WORKLET = (Path(package.__file__).parent / "web/worklet.js").read_text(encoding="utf-8")
# One quantum after the other: frames that arrive in it, then `process`. A frame is [arrival in ms, turn, value]; value
# null ends the turn.
PLAY = """([source, frames, quanta]) => {
  globalThis.sampleRate = 24000;
  globalThis.currentFrame = 0;
  globalThis.AudioWorkletProcessor = class { port = { postMessage: (report) => reports.push(report) }; };
  globalThis.registerProcessor = (name, of) => { globalThis.Player = of; };
  const reports = [], heard = [], depths = [], positions = {};
  new Function(source)();
  const player = new Player({ processorOptions: { depthS: 0.08 } });
  const waiting = frames.map(([ms, turn, value]) => {
    const data = new ArrayBuffer(value === null ? 16 : 16 + 4 * 480), header = new DataView(data);
    header.setUint32(0, turn, true);
    header.setUint32(4, positions[turn] ??= 0, true);
    if (value !== null) { positions[turn] += 480; new Float32Array(data, 16).fill(value); }
    return [24 * ms, data];
  });
  for (let quantum = 0; quantum < quanta; quantum++) {
    while (waiting.length && waiting[0][0] <= currentFrame) { player.take(waiting.shift()[1]); }
    const out = new Float32Array(128);
    player.process([], [[out]]);
    heard.push(...out);
    depths.push(player.depth / 24);
    currentFrame += 128;
  }
  return { heard, depths, underruns: player.underruns };
}"""
SILENT, SOUND, END = 0.0, 0.5, None


@pytest.fixture
def play(browser):
    page = browser.new_page()

    def played(frames, seconds=3.0):
        return page.evaluate(PLAY, [WORKLET, frames, round(seconds * 24000 / 128)])

    yield played
    page.close()


def on_time(values, turn=1, late=()):
    """Frames each 20 ms; those in `late`, index to ms, come later, and the ones after them not before them."""
    frames, after = [], 0.0
    for number, value in enumerate(values):
        after = max(after, 20.0 * number + dict(late).get(number, 0.0))
        frames.append([after, turn, value])
    return frames


def runs_of_sound(heard):
    """Lengths of the stretches of sound, in samples."""
    joined = "".join("x" if sample else " " for sample in heard)
    return [len(run) for run in joined.split()]


def test_nothing_is_missing_while_frames_come_within_the_buffer(play):
    result = play(on_time([SOUND] * 50 + [END], late={20: 50.0, 30: 55.0}))
    assert result["underruns"] == 0
    assert runs_of_sound(result["heard"]) == [50 * 480]


def test_frames_that_come_late_in_silence_deepen_the_buffer_before_sound_is_due(play):
    values = [SILENT] * 40 + [SOUND] * 40 + [END]
    result = play(on_time(values, late={10: 200.0, 60: 190.0}))
    assert result["underruns"] == 0
    assert runs_of_sound(result["heard"]) == [40 * 480]
    assert max(result["depths"]) == pytest.approx(240.0, abs=6.0)  # the latest frame and 40 ms, in quanta of 5.3 ms


def test_sound_that_comes_too_late_is_one_underrun_faded_out_and_in_and_nothing_is_lost(play):
    result = play(on_time([SOUND] * 60 + [END], late={30: 200.0}))
    assert result["underruns"] == 1
    before, after = runs_of_sound(result["heard"])
    assert before + after == pytest.approx(60 * 480, abs=1)  # the last sample of the fade is 0
    steps = [abs(b - a) for a, b in zip(result["heard"], result["heard"][1:], strict=False)]
    assert sorted(steps)[-3] < 0.01  # but for the two edges of the test's own signal


def test_the_same_delay_a_second_time_is_no_second_underrun(play):
    result = play(on_time([SOUND] * 100 + [END], late={30: 200.0, 70: 200.0}), seconds=4.0)
    assert result["underruns"] == 1


def test_a_turn_without_late_frames_brings_the_buffer_back(play):
    turns = on_time([SILENT] * 30 + [END], late={10: 200.0})
    for turn in (2, 3):
        turns += [[1000.0 * turn + ms, turn, value] for ms, _, value in on_time([SOUND] * 20 + [END])]
    result = play(turns, seconds=4.0)
    assert max(result["depths"]) > 200.0
    assert result["depths"][-1] == 80.0
    assert result["underruns"] == 0


def test_the_buffer_is_never_deeper_than_half_a_second(play):
    result = play(on_time([SOUND] * 60 + [END], late={30: 2000.0}), seconds=5.0)
    assert max(result["depths"]) == 500.0
    assert result["underruns"] == 1
