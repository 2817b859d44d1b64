"""Commands from other threads, at the very moment at which they could do harm."""

import threading
from contextlib import suppress

import numpy as np
import pytest

import cues
from cues._kernels import layout as at
from cues.mixing.voice import Wait
from tests.support.mixing_scripts import noise_cue, run, speech, tone, zeros
from tests.support.threads import run_together

pytestmark = pytest.mark.usefixtures("loops")

FOREVER = cues.Cue(name="forever", samples=np.full(4800, 0.25))


def in_another_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


class Overtaken(list):
    """An inbox in which another thread acts before the first command, or after it, before the mixer's mark is set."""

    def __init__(self, act, *, behind=False):
        super().__init__()
        self._act, self._behind = act, behind

    def append(self, command):
        act, self._act = self._act, None
        if self._behind:
            super().append(command)
        if act:
            in_another_thread(act)
        if not self._behind:
            super().append(command)


class Interrupted:
    """A sound with whose voice a slot is being filled when another thread acts."""

    def __init__(self, sound, act):
        self._sound, self._act = sound, act

    def __getattr__(self, name):
        if name == "soft_start":
            in_another_thread(self._act)
        return getattr(self._sound, name)


class ClosingNumber:
    """A number that closes a mixer when it is read."""

    def __init__(self, mixer):
        self._mixer = mixer

    def __index__(self):
        in_another_thread(self._mixer.close)
        return 0


@pytest.mark.parametrize("loop", [False, True], ids=["once", "loop"])
@pytest.mark.parametrize("at", [None, 960], ids=["now", "later"])
def test_a_cue_that_is_overtaken_by_close_never_sounds(at, loop):
    mixer = cues.Mixer()
    mixer._scheduler._inbox = Overtaken(mixer.close)
    voice = mixer.play(FOREVER, at=at, loop=loop)
    assert mixer.closed
    assert (voice.done, mixer.active) == (True, False)
    assert not run(mixer, zeros(4800)).any()
    assert (voice.done, voice.onset, mixer.active, mixer.stats.started) == (True, None, False, 0)
    frame = zeros(480)
    assert mixer.mix(frame) is frame


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


def test_a_release_that_is_overtaken_by_close_does_not_silence_the_speech():
    mixer = cues.Mixer()
    talk = speech(9600)
    run(mixer, talk[:480])
    mixer._scheduler._inbox = Overtaken(mixer.close)
    mixer.release()
    np.testing.assert_array_equal(run(mixer, talk[480:]), talk[480:])


def test_a_gain_and_a_longer_fade_that_are_overtaken_by_close_change_nothing_of_its_fade():
    def closed(act):
        mixer = cues.Mixer()
        voice = mixer.play(FOREVER, loop=True)
        run(mixer, zeros(4800))
        mixer._scheduler._inbox = Overtaken(mixer.close)
        act(voice)
        return run(mixer, zeros(4800))

    def louder(voice):
        voice.gain_db = 10.0

    alone, *others = (closed(act) for act in (lambda voice: voice._scheduler.end(), louder, lambda v: v.stop(10_000)))
    assert not alone[-4000:].any()
    for other in others:
        np.testing.assert_array_equal(other, alone)


def test_a_command_that_is_carried_out_before_it_is_marked_leaves_the_mixer_as_quick_as_it_was():
    mixer = cues.Mixer()
    frame = zeros(480)
    mixer._scheduler._inbox = Overtaken(lambda: mixer.mix(zeros(480)), behind=True)
    mixer.resume()
    for _ in range(2):
        assert mixer.mix(frame) is frame
    assert mixer._row.words[at.WAKE_I64] == at.NEVER  # no frame comes to Python for its sake any more


def test_a_place_that_is_asked_for_while_its_old_session_is_being_planned_gets_nothing_of_it():
    pool = cues.MixerPool(sessions=2)
    old = pool[0]
    fresh = []

    def renew():
        old.close()
        fresh.append(pool[0])

    voice = old.play(FOREVER, loop=True)
    voice._playback.sound = Interrupted(voice._playback.sound, renew)
    pool.mix(np.zeros((2, 480), dtype=np.float32))
    assert (fresh[0].position, fresh[0].active) == (0, False)
    assert pool[0] is fresh[0]
    for mixed in range(1, 4):
        assert not pool.mix(np.zeros((2, 480), dtype=np.float32)).any()
        assert (fresh[0].position, pool[1].position) == (480 * mixed, 480 * (mixed + 1))
    assert not fresh[0].active
    run(old, zeros(4800))
    assert not old.active


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

    run_together(play, mixer.close, lambda: run(mixer, zeros(1920)))
    return mixer, played


def test_no_mixer_sounds_after_its_close_however_threads_are_switched():
    frame = zeros(480)
    for _ in range(150):
        mixer, played = closed_while_played()
        run(mixer, zeros(24000))
        assert mixer.mix(frame) is frame
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
        while not over.is_set():
            voice = mixer.play(cue)
            voice.gain_db = -6.0
            voice.stop(5.0)
            assert (voice.cue, voice.gain_db) == (cue, -6.0)
            assert voice.done or voice.onset is None or voice.onset >= 0
            assert cue.name in repr(voice)

    def wait():
        while not over.is_set():
            voice = mixer.play(cue, loop=True, wait=Wait(not_before=mixer.position + 100))
            voice.wait = Wait(not_before=mixer.position, give_up_at=mixer.position + 500)
            assert all(end is None or start <= end for start, end in voice.stretches)
            mixer.listens = not mixer.listens
            voice.stop()

    def read():
        last = 0
        while not over.is_set():
            values = {name: getattr(mixer, name) for name in READ}
            assert last <= values["position"] <= 60 * 4800
            last = values["position"]
            assert not values["closed"]
            assert values["stats"].stolen <= values["stats"].started
            assert "Mixer at 24000 Hz" in repr(mixer)

    run_together(mix, play, wait, read)
    run(mixer, zeros(24000))
    assert positions == [4800 * (n + 1) for n in range(60)]
    assert not mixer.active
    assert mixer.mix(zeros(480)).shape == (480,)
