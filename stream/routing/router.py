"""Events in, mixer commands out: which cue sounds, and when.

The mixer's position is the clock, so the same events at the same positions give the same sounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, wraps
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

from cues import Cue, Mixer
from stream.errors import StreamTypeError
from stream.events import (
    AudioDelta,
    Finish,
    Interrupted,
    ServerError,
    ServiceEvent,
    StreamFailed,
    TextDelta,
    ToolCallCancelled,
    ToolCallEnd,
    ToolCallStart,
    TranscriptDelta,
)
from stream.known_tools import KnownInStream, KnownTools
from stream.readers.formats.finish_reasons import CHAT_CALLS, calls_are_the_clients, ended_early, ends_whole_turn
from stream.readers.options import Tools, declared_names, kept
from stream.routing.call_cues import OUTCOME_PRIORITY, CallCues
from stream.routing.expected_silence import Expected, ExpectedSilence
from stream.routing.player import FADE_MS, CuePlayer, Played, RouterStats
from stream.routing.router_arguments import check_arguments, check_cue_names, guesses_s
from stream.routing.rules import DEFAULT_RULES, CueRules, Limits
from stream.routing.spans import Spans
from stream.routing.tool_times import Took, ToolTimes
from stream.routing.turn_state import Phase, TurnState
from stream.routing.waiting_sound import WaitingSound
from stream.routing.words_ahead import Output, WordsAhead

__all__ = ["DEFAULT_RULES", "CueRouter", "CueRules", "Played", "RouterStats"]

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

_SOME_WORDS_S = 0.001  # Words of which nobody knows how many.
_ALONE_S = 60.0  # Longest wait after an event, where no session or adapter watches the turn.


def _one_at_a_time(
    method: Callable[Concatenate[CueRouter, _P], _Result],
) -> Callable[Concatenate[CueRouter, _P], _Result]:
    """A method of the router that runs in one thread at a time; what it calls back may call the router again."""

    @wraps(method)
    def alone(self: CueRouter, /, *arguments: _P.args, **options: _P.kwargs) -> _Result:
        with self._lock:
            return method(self, *arguments, **options)

    return alone


# More than 250 lines and 20 methods: the public face of the cues' rules. Its methods are short, and documented.
class CueRouter:
    """Plays cues for the events of a stream.

    Any thread may use it: calls take turns, and frames are mixed meanwhile. Callbacks (`tell`, subscribers of `spans`)
    run in the thread that calls the router; they may call it, but not wait for another thread that does.

    Parameters
    ----------
    bank : Mapping[str, Cue]
        From `cues.load_bank`, or your own. It must hold the cues that you set in `rules`; a default that it lacks is
        silent. Its own rules (`bank.rules`, from a pack) take precedence over `rules`.
    mixer : Mixer
        Plays the cues.
    rules : CueRules
    tools : Tools
        The declared tools, as in `stream.read`; `None` if not known. A call of any other tool plays the cue for
        invented tools, unless the server runs the tools (`CueRules.server_tools`).
    now_samples : callable or None
        The time in samples for coalescing, bursts and `sounded`. The default, the mixer's position, is right if frames
        flow without a pause, also between turns; a `VoiceSession` adds the time between its turns by itself.
    limits : Limits or None
        Timeouts, for a caller that looks at `overdue`. With `None` the waiting sound ends at a finish reason that
        announces no calls, and 60 s after the last event.
    times : ToolTimes or None
        What each tool takes, for the profiles; sessions may share it. `None` learns it in this one.

    Raises
    ------
    StreamTypeError, StreamValueError
        If a parameter has the wrong type, or `rules` names a cue that is not in the bank.

    Examples
    --------
    >>> import cues, stream
    >>> mixer = cues.Mixer(sample_rate=24000)
    >>> router = stream.CueRouter(cues.load_bank(), mixer, rules=stream.CueRules(success=None))
    >>> router.handle(stream.ToolCallStart(tool_name="read_file", tool_call_id="call_1")).cue  # each event
    'tool_call'
    >>> bool(mixer.silence(480).any())  # or mixer.mix(frame): the cue is in the next frame
    True
    """

    def __init__(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        *,
        rules: CueRules = DEFAULT_RULES,
        tools: Tools = None,
        now_samples: Callable[[], int] | None = None,
        limits: Limits | None = None,
        times: ToolTimes | None = None,
    ) -> None:
        check_arguments(bank, mixer, rules)
        if times is not None and not isinstance(times, ToolTimes):
            raise StreamTypeError(f"times is {times!r}; it must be a stream.ToolTimes, or None")
        self._lock = RLock()
        self._rules = rules
        tools = kept(tools)
        self._declared = declared_names(tools)
        self._tools = KnownTools(self._declared, rules.server_tools)
        self._known = KnownInStream(self._tools)
        self._words = WordsAhead(self._output)
        self._player = CuePlayer(bank, mixer, rules, now_samples, self._words)
        self._turn = TurnState(self._next_word)
        self._calls = self._turn.calls
        self.times = ToolTimes() if times is None else times
        self._guesses_s = guesses_s(tools)
        self._silence = ExpectedSilence()
        self._call_cues = CallCues(
            self._turn,
            self._player,
            rules,
            times=self.times,
            silence=self._silence,
            expect=self._expect,
            patience_s=lambda: self._waiting.patience_after_call_s,
        )
        self._sounded_from: int | None = None  # onset of the waiting sound that was heard while calls came
        self.limits = limits
        self._begin_on_mixer()

    def _begin_on_mixer(self) -> None:
        self._moved = self._player.mixer.position, self._player.now_samples()  # the output's last sample, and its time
        self._call_cues.prepare(self._declared or ())
        self._waiting = WaitingSound(self._player, self._turn, self._rules)
        self.alive()

    @_one_at_a_time
    def use_mixer(self, mixer: Mixer, bank: Mapping[str, Cue] | None = None) -> None:
        """Continue on another mixer; switches, counts and subscribers stay, calls under way are forgotten.

        Errors are those of `CueRouter`; the router is then unchanged.
        """
        bank = self._player.bank if bank is None else bank
        check_arguments(bank, mixer, self._rules)
        self.barge_in()
        self._player.use_mixer(bank, mixer)
        self._begin_on_mixer()

    # Events.

    @_one_at_a_time
    def handle(self, event: ServiceEvent) -> Played | None:
        """Apply the rules to one event; returns the cue that it started, if it started at once.

        After the mixer was closed, such as by a hangup, nothing sounds any more.
        """
        self._note_frames()
        self.alive()
        self._known.note(event)
        played = self._react(event)
        self._follow()
        return played

    def _react(self, event: ServiceEvent) -> Played | None:
        match event:
            case TextDelta(channel="json") | ToolCallStart(told=True) | ToolCallEnd(told=True):
                return None
            case TextDelta(text=text) | TranscriptDelta(text=text, speaker="assistant"):
                if text.strip():
                    self._has_text(text)
            case AudioDelta():
                self._has_text("")
            case ToolCallCancelled():
                self.end_call(event.tool_call_id)
            case Finish():
                self._finished(event.reason)
            case Interrupted():
                self.barge_in()
            case ServerError():
                return self._player.play(self._rules.failed, event, priority=OUTCOME_PRIORITY)
            case StreamFailed():
                self._calls.clear()
                self._turn.over()
                self._player.drop_calls()
                return self._player.play(self._rules.failed, event, priority=OUTCOME_PRIORITY)
            case _ if not isinstance(event, ServiceEvent):
                raise StreamTypeError(f"event is {event!r}; it must be an event, as stream.read yields them")
            case _:  # of a call, or without a cue
                if isinstance(event, (ToolCallStart, ToolCallEnd)):
                    self._sounded_from = self._waiting.onset
                return self._call_cues.handle(event, self._known)
        return None

    def _has_text(self, text: str) -> None:
        now_s, is_new = self._player.now_s, not self._turn.has_text
        self._turn.text()
        if text:
            self._player.give_way()
            self._words.text(is_new=is_new)
        self._silence.text(text, now_s)
        self._player.drop(words_in_s=self._silence.voice_left_s(now_s))

    def _finished(self, reason: str) -> None:
        ends = [call for call in self._calls.awaited if call.is_complete and not call.is_task] + self._calls.refused
        answered = [] if self._turn.has_text else self._calls.answered
        ends += answered
        # A sound that began before the last call was complete does not show that the server ran it.
        sounds = self._waiting.onset not in (None, self._sounded_from) and not answered
        by_server = (self._turn.has_text or sounds) and not all(call.from_text for call in ends)
        is_ours = bool(ends) and not (ended_early(reason) or by_server)
        # Most formats have one reason for answers with calls and for those without.
        if calls_are_the_clients(reason):
            # A refused call has no outcome yet.
            is_answered = self._turn.has_text and ends_whole_turn(reason)
            has_calls = self._calls.refused or (self._calls.in_answer and not is_answered)
            is_ours = self.waits or (bool(has_calls) and not ended_early(reason))
        self._calls.end_answer()
        # "stop" announces calls, too, if the answer ends with complete ones.
        if is_ours or reason in CHAT_CALLS:
            if self.waits:
                self._turn.outcome()
        else:
            self.end_stream()

    def _next_word(self) -> int:
        """The first output sample at which speech of now can be heard."""
        return max(self._player.mixer.position, self._waiting.queued_until)

    def _output(self) -> Output:
        mixer = self._player.mixer
        return Output(mixer, self._idle_samples(), self._waiting.queued_until)

    @_one_at_a_time
    def begin_answer(self) -> None:
        """Note that the model begins an answer, for pipelines that tell no `Finish` of one with calls."""
        self._calls.end_answer()

    @_one_at_a_time
    def end_call(self, tool_call_id: str, tool_name: str = "") -> None:
        """End a call without an outcome (cancelled, say): no cue sounds for it."""
        self._calls.end(tool_call_id, tool_name)
        if self.waits:
            self._turn.outcome()
        else:
            self._turn.heard()
        self._follow()

    @_one_at_a_time
    def end_stream(self) -> None:
        """End the calls under way: no event will come; text may still be spoken."""
        self._calls.clear()
        self._known.in_fallback = False
        self._turn.finish(speech_follows=self.limits is not None)
        self._follow()

    # The phase of the turn, and its limits.

    @property
    def phase(self) -> Phase:
        """The phase of the turn, named after what the user waits for."""
        return self._turn.phase

    @property
    def is_over(self) -> bool:
        """Whether nothing is awaited, of the model, its tools or the voice."""
        return self._turn.phase == "done" and not self._turn.is_open

    @property
    def waits(self) -> bool:
        """Whether the outcome of a call is awaited."""
        return bool(self._calls.awaited)

    @property
    def has_waiting_cue(self) -> bool:
        """Whether a cue is due that waits for a pause, or for the end of the words."""
        return self._player.waits_for_pause

    @_one_at_a_time
    def alive(self) -> None:
        """Note that the model is active; `handle` does so, too."""
        self._active_at = self._player.now_samples()

    @_one_at_a_time
    def overdue(self, *, is_open: bool | None = None) -> StreamFailed | None:
        """The failure of a model, tool or voice that was silent beyond `limits`, for `handle`; `None` if in time.

        `is_open` says whether events are still expected; by default the events themselves do.
        """
        self._note_frames()
        limit_s, silent = self._limit(self._turn.is_open if is_open is None else is_open)
        silent_samples = self._player.now_samples() - self._active_at
        if self.limits is None or silent_samples <= limit_s * self._player.mixer.sample_rate:
            return None
        return StreamFailed(f"the {silent} has sent nothing for {limit_s:g} s", code="stalled")

    def _limit(self, is_open: bool) -> tuple[float, str]:
        """The limit in force, seconds, and for whom."""
        if self.limits is None:
            return _ALONE_S, "model"
        model_s = self.limits.tool_s if self.waits else self.limits.model_s
        model = (model_s if is_open else math.inf, "model")
        awaits_speech = self._turn.phase == "answering" and self._turn.has_text
        return min(model, (self.limits.speech_s if awaits_speech else math.inf, "speaker"))

    # Speech, turns and barge-in.

    @_one_at_a_time
    def speech(self, until: int) -> None:
        """Note that speech is queued up to an output sample: the waiting sound does not begin before its end.

        Speech that is heard ends the waiting sound by itself, because the mixer listens.
        """
        self._note_frames()
        self._waiting.queue(until)
        self._words.speech()

    @_one_at_a_time
    def words_go_on(self, go_on: Callable[[], bool | None], *, follow_text: bool = True) -> None:
        """Ask whoever speaks whether more words come, before a cue that follows them; `None` leaves it to the ear.

        A phrase, and a cue placed after the words, then wait through a silence of up to 2 s; without an answer, 0.2 s.
        They wait as long for the voice of a text, or 0.6 s behind other words, unless it does not `follow_text` soon.
        """
        self._words.go_on, self._words.follow_text, self._words.is_polled = go_on, follow_text, True

    @_one_at_a_time
    def written(self) -> None:
        """Note text that is shown and not spoken: it ends the wait for an answer, and no voice follows."""
        self._silence.called(self._player.now_s)
        if not (self.waits or self._turn.has_text):  # words that came before it are still to be heard
            self._turn.heard()
        self._follow()

    @_one_at_a_time
    def poll(self) -> None:
        """Note cues that have started in a pause, and the answer's first word; call it after each frame.

        `handle` and `speech` do so, too, but what follows the words may then come late.
        """
        self._words.is_polled = True
        self._note_frames()

    def _note_frames(self) -> None:
        self._idle_samples()
        self._words.poll()
        if self._player.puts_off and self._words.are_spoken():
            self._player.hold_off()
        self._player.poll()
        self._waiting.publish()
        if self._waiting.sounds:
            self._player.drop()
        if self._waiting.answered:
            self._turn.heard()
            self._silence.heard(self._player.now_s)
            self._waiting.end()
            self._follow()

    @_one_at_a_time
    def begin_turn(self) -> None:
        """Start a new turn, when the user has finished; no cue coalesces with the last turn's."""
        self._player.begin_turn()
        self._known = KnownInStream(self._tools)
        self._note_frames()
        self.alive()
        self._turn.question()
        self._silence.cut()
        self._silence.ask(self._player.now_s)
        self._follow()

    @_one_at_a_time
    def cancel(self) -> None:
        """End the turn: forget the calls under way and stop the waiting sound."""
        self._player.end_turn()
        self._words.forget()
        self._calls.clear()
        self._turn.over()
        self._silence.cut()
        self._follow()

    @_one_at_a_time
    def barge_in(self, fade_ms: float = 30.0) -> None:
        """End the turn: cues fade, waiting ones are cancelled, late results are silent."""
        self._calls.give_up()
        self.cancel()
        self._player.silence(fade_ms)
        self._waiting.queued_until = 0

    @_one_at_a_time
    def hush(self, fade_ms: float | None = 30.0) -> None:
        """Fade every cue, but still await outcomes: the user speaks while the tools run on.

        With `None` other cues play on, and only the waiting sound ends: the user is asked something.
        """
        if fade_ms is not None:
            self._player.end_turn()
            self._words.forget()
        self._turn.over(is_open=self.waits)
        self._follow()
        if fade_ms is not None:
            self._player.silence(fade_ms)
            self._waiting.queued_until = 0

    def sounded(self, within_ms: float = 200.0) -> bool:
        """Whether a cue was in the last `within_ms` of the output: to hold a voice detector or a recognizer."""
        position = self._player.mixer.position
        since = position + self._idle_samples() - round(within_ms * self._player.mixer.sample_rate / 1000.0)
        return self.spans.overlaps(since, position)

    def _idle_samples(self) -> int:
        """How long the output has stood still: most pipelines send nothing where nothing sounds."""
        position, now = self._player.mixer.position, self._player.now_samples()
        if self._moved[0] != position:
            self._moved = position, now
        return now - self._moved[1]

    # Mute switches, counts and spans.

    @property
    def muted(self) -> bool:
        """Whether all cues are off. Setting it fades the cues that sound, and cancels those that wait."""
        return self._player.muted

    @muted.setter
    @_one_at_a_time
    def muted(self, muted: bool) -> None:
        self._player.muted = bool(muted)
        if muted:
            self._player.silence(FADE_MS)
        self._follow()

    @_one_at_a_time
    def mute(self, *cues: str) -> None:
        """Mute cues by name; a name that neither bank nor rules know raises a `StreamError`."""
        check_cue_names(cues, self._player.bank, self._rules)
        self._player.mute(cues)
        self._follow()

    @_one_at_a_time
    def unmute(self, *cues: str) -> None:
        """Unmute cues by name, as in `mute`; without names, all."""
        check_cue_names(cues, self._player.bank, self._rules)
        self._player.unmute(cues)
        self._follow()

    @property
    def stats(self) -> RouterStats:
        """Counts of the decisions so far."""
        return self._player.stats

    @property
    @_one_at_a_time
    def spans(self) -> Spans:
        """When the cues sound."""
        self._waiting.publish()
        return self._player.spans

    @_one_at_a_time
    def tell(
        self,
        *,
        after_words: Callable[[Callable[[int], None]], None] | None = None,
        on_played: Callable[[Played], None] | None = None,
        now_samples: Callable[[], int] | None = None,
    ) -> None:
        """Connect the router with a session.

        Parameters
        ----------
        after_words : callable or None
            Takes a callback, and calls it with the output sample at which the words sent so far end, once that is
            known. Without it the router listens, and goes by `speech`, the text that it is told, and `words_go_on`.
        on_played : callable or None
            Gets every cue that sounds.
        now_samples : callable or None
            The time from now on, in samples, for a router that was made without; `None` keeps the present clock.
        """
        self._player.on_played = on_played
        if now_samples is not None:
            self._player.use_clock(now_samples)
        self._player.after_words = after_words and (lambda then: after_words(partial(self._alone, then)))

    @_one_at_a_time
    def play_while(self, is_heard: Callable[[], bool]) -> None:
        """Drop cues whose event comes while `is_heard()` is False: the output takes no frames, and they would be late.

        The waiting sound stays, and begins later if it is still due.
        """
        self._player.is_heard = is_heard

    @_one_at_a_time
    def _alone(self, then: Callable[[int], None], at: int) -> None:
        then(at)

    # The silence to come, and the sound that fills it.

    def _expect(self) -> Expected:
        """The silence to come; none while the waiting sound is heard."""
        now_s, player = self._player.now_s, self._player
        running = [(self._usual(call.tool_name), now_s - call.began_s) for call in self._calls.awaited]
        queued = max(self._waiting.queued_until - player.mixer.position, 0)
        expected = self._silence.after(now_s, running, queued / player.mixer.sample_rate)
        if not expected.speech_s and self._words.are_ahead():
            expected = expected._replace(speech_s=_SOME_WORDS_S)
        return expected._replace(silence_s=0.0) if self._waiting.sounds else expected

    def _usual(self, tool_name: str) -> Took | None:
        guess_s = self._guesses_s.get(tool_name, self._rules.usual_s(tool_name))
        return self.times.usual(tool_name) or (None if guess_s is None else Took(guess_s, guess_s))

    def _follow(self) -> None:
        """Let the waiting sound follow the phase of the turn."""
        if self._turn.phase == "done":
            self._player.drop()
        self._waiting.follow(self._limit(self._turn.is_open)[0], has_limits=self.limits is not None)
