"""Commands from other threads, at the very moment at which they could do harm."""

import threading
from contextlib import suppress

import numpy as np
import pytest

import cues
from cues.mixing.voice import Wait
from tests.support.mixing_scripts import noise_cue, run, speech, tone, zeros
from tests.support.threads import run_together

pytestmark = pytest.mark.usefixtures("loops")

FOREVER = cues.Cue(name="forever", samples=np.full(4800, 0.25))


def in_another_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


class ClosingNumber:
    """A number that closes a mixer when it is read."""

    def __init__(self, mixer):
        self._mixer = mixer

    def __index__(self):
        in_another_thread(self._mixer.close)
        return 0


def test_a_cue_whose_mixer_is_closed_while_play_checks_it_is_not_active():
    mixer = cues.Mixer()
    voice = mixer.play(FOREVER, at=ClosingNumber(mixer))
    assert (voice.done, mixer.active) == (True, False)
    mixer.mix(zeros(480))
    assert (voice.done, mixer.active, mixer.stats.started) == (True, False, 0)


@pytest.mark.parametrize("mixed_before", [False, True], ids=["in the inbox", "scheduled"])
def test_what_waits_when_a_mixer_is_closed_is_no_longer_active_though_nobody_mixes(mixed_before):
    mixer = cues.Mixer()
    voices = [mixer.play(tone(), at=48000), mixer.play(tone(), at=48000, placement="in_pause")]
    if mixed_before:
        mixer.mix(zeros(480))
    assert mixer.active
    mixer.close()
    assert [voice.done for voice in voices] == [True, True]
    assert not mixer.active


def test_a_renewed_session_hears_the_commands_from_before_and_after_it_took_its_place():
    pool = cues.MixerPool(sessions=1)
    quiet = np.zeros((1, 480), dtype=np.float32)
    pool.mix(quiet)
    pool[0].close()
    fresh = pool[0]
    mix = fresh.mix
    first = fresh.play(noise_cue(), at=480)
    assert not pool.mix(quiet).any()
    second = fresh.play(noise_cue(), at=2 * 480 + 2400)
    assert pool.mix(quiet).any()
    assert (first.onset, second.onset) == (480, None)
    for _ in range(6):
        mix(quiet[0])  # a method that was looked up before is the same mixer's
    assert (second.onset, fresh.position) == (2 * 480 + 2400, 8 * 480)


def closed_while_played():
    """A mixer that one thread plays, another closes and a third mixes, and what was played."""
    mixer, played = cues.Mixer(), []

    def play():
        with suppress(cues.MixerClosedError):
            while True:
                played.append(mixer.play(FOREVER, loop=True))
                mixer.release()
                mixer.resume()
                played[-1].gain_db = 10.0
                played[-1].stop(10_000)

    run_together(play, mixer.close, lambda: run(mixer, zeros(1920)))
    return mixer, played


def test_no_mixer_sounds_after_its_close_however_threads_are_switched():
    frame = speech(480)
    for _ in range(150):
        mixer, played = closed_while_played()
        run(mixer, zeros(24000))
        assert mixer.mix(frame) is frame  # not faded by a release, either
        assert not mixer.active
        assert all(voice.done for voice in played)


READ = (
    "position",
    "heard",
    "active",
    "closed",
    "stats",
    "sample_rate",
    "latency_samples",
    "state_bytes",
    "lead_samples",
)


def test_what_any_thread_may_read_and_call_is_right_while_others_play_and_mix():
    mixer, over, positions = cues.Mixer(limiter=True, follow_speech=True), threading.Event(), []
    talk, cue = speech(4800), tone(2400)

    def mix():
        for _ in range(60):
            run(mixer, talk)
            positions.append(mixer.position)
        over.set()

    def play():
        voice = mixer.play(cue)
        voice.gain_db = -6.0
        voice.stop(5.0)
        assert (voice.cue, voice.gain_db) == (cue, -6.0)
        assert voice.done or voice.onset is None or voice.onset >= 0
        assert cue.name in repr(voice)

    def wait():
        voice = mixer.play(cue, loop=True, wait=Wait(not_before=mixer.position + 100))
        voice.wait = Wait(not_before=mixer.position, give_up_at=mixer.position + 500)
        assert all(end is None or start <= end for start, end in voice.stretches)
        mixer.listens = not mixer.listens
        voice.stop()

    def again_and_again(act):
        while not over.is_set():
            with suppress(cues.CueValueError):  # too many commands wait, where the mixing thread waits for its turn
                act()

    def read():
        last = 0
        while not over.is_set():
            values = {name: getattr(mixer, name) for name in READ}
            assert last <= values["position"] <= 60 * 4800
            last = values["position"]
            assert not values["closed"]
            assert values["stats"].stolen <= values["stats"].started
            assert "Mixer at 24000 Hz" in repr(mixer)

    run_together(mix, lambda: again_and_again(play), lambda: again_and_again(wait), read)
    run(mixer, zeros(24000))
    assert positions == [4800 * (n + 1) for n in range(60)]
    assert not mixer.active
    assert mixer.mix(zeros(480)).shape == (480,)
