"""Which cue, and when: events in, mixer commands out.

The router decides and the mixer obeys. Its clock is the mixer's own count of samples, so the same events at the same
positions give the same sounds.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream.errors import StreamTypeError
from stream.events import (
    AskedAgain,
    Finish,
    InvalidToolCall,
    ServiceEvent,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.known_tools import KnownInStream, KnownTools
from stream.readers.options import declared_names
from stream.routing.calls import CallsUnderWay
from stream.routing.checks import check_bank, check_cue_names, check_mixer, check_rules
from stream.routing.player import FADE_MS, CuePlayer, Played, RouterStats
from stream.routing.rules import DEFAULT_RULES, MOTIF, CueRules
from stream.routing.waiting import WaitingSound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cues import Cue, Mixer
    from stream.readers.options import Tools
    from stream.routing.calls import CallUnderWay
    from stream.routing.spans import Spans

__all__ = ["DEFAULT_RULES", "CueRouter", "CueRules", "Played", "RouterStats"]

_OUTCOME_PRIORITY = 1  # Where voices are short, how it ended counts more than that it began.
# A stream that ends with one of these leaves its calls to whoever reads it; any other reason means that they are over.
_TOOLS_FOLLOW = ("tool_calls", "function_call")


class CueRouter:
    """Turns the events of a stream into cues.

    Parameters
    ----------
    bank : cues by name: what `cues.load_bank` makes, or a mapping of yours. It must hold the cues that you write into
        `rules`; a default that it lacks is silent. Where it has rules of its own (`bank.rules`, from a pack), they come
        before those of `rules`.
    mixer : what plays the cues; its position is the router's clock.
    rules : what sounds for what.
    tools : the declared tools, as `stream.read` takes them: names, OpenAI tool dicts, or objects with a `name`. A call
        of any other is announced with the cue for invented ones, unless the server runs the tools: see
        `CueRules.server_tools`. `None`: not known.
    now_samples : the time that coalescing and bursts are counted in, samples; where frames flow without a pause that is
        the mixer's position, and the default.

    Raises
    ------
    StreamTypeError : for a bank, a mixer, rules or tools that are none.
    StreamValueError : for rules that name a cue that is not in the bank.
    """

    def __init__(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        *,
        rules: CueRules = DEFAULT_RULES,
        tools: Tools = None,
        now_samples: Callable[[], int] | None = None,
    ) -> None:
        check_rules(rules)
        check_bank(bank, rules)
        check_mixer(mixer)
        self._rules = rules
        self._tools = KnownTools(declared_names(tools), rules.server_tools)
        self._known = KnownInStream(self._tools)
        self._calls = CallsUnderWay()
        self._spoke_at = 0
        self._connect(bank, mixer, now_samples)

    def _connect(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        now_samples: Callable[[], int] | None,
        after: CuePlayer | None = None,
    ) -> None:
        """Play on `mixer`, in the place of another stage if there was one."""
        self._bank, self._mixer, self._given_clock = bank, mixer, now_samples
        self._pack_rules: tuple[tuple[str, str], ...] = tuple(getattr(bank, "rules", ()))
        self._player = CuePlayer(bank, mixer, self._rules, now_samples or (lambda: mixer.position))
        if after is not None:
            self._player.succeed(after)
        self._waiting = WaitingSound(
            mixer,
            self._player.spans,
            self._working_cue,
            after_s=self._rules.working_after_s,
            pause_s=self._rules.working_pause_s,
        )

    def move_to(self, mixer: Mixer, bank: Mapping[str, Cue] | None = None) -> None:
        """Go on with another mixer, of another sample rate say; switches, counts and subscribers stay.

        Calls under way are forgotten.

        Raises
        ------
        StreamTypeError, StreamValueError : as of `CueRouter`; nothing has changed then.
        """
        check_mixer(mixer)
        if bank is not None:
            check_bank(bank, self._rules)
        self.barge_in()
        self._spoke_at = 0
        self._connect(self._bank if bank is None else bank, mixer, self._given_clock, after=self._player)

    # What the stream says.

    def handle(self, event: ServiceEvent) -> Played | None:
        """Do what the rules say for one event; returns the cue that it started, if it did so at once.

        Raises
        ------
        StreamTypeError : for what is no event. No event raises, whatever a server has put into it.
        """
        self.poll()
        self._known.note(event)
        match event:
            case ToolCallStart():
                return self._call_known(event)
            case ToolCallEnd():
                return self._arguments_ended(event)
            case ToolResult():
                return self._result_known(event)
            case InvalidToolCall():
                return self._invalid(event)
            case TextDelta():
                # Speech ends the wait, also where the server never tells a result.
                if event.text.strip():
                    self._spoke_at = self._mixer.position
                    self._waiting.disarm()
            case AskedAgain(how="fallback"):
                self._known.trust()  # the fallback has tools of its own
            case TaskStatus(status="completed"):
                self._all_over()
            case Finish():
                self._finished(event)
            case StreamFailed():
                self._all_over()
                return self._player.play(self._rules.failed, event, priority=_OUTCOME_PRIORITY)
            case _ if not isinstance(event, ServiceEvent):
                raise StreamTypeError(f"event is {event!r}; it must be an event, as stream.read yields them")
        return None

    def end_call(self, tool_call_id: str, tool_name: str = "") -> None:
        """Note that a call is over without an outcome (cancelled, say): its phase ends without a sound."""
        self._calls.end(tool_call_id, tool_name)
        self._wait_if_awaited()

    @property
    def waits(self) -> bool:
        """Whether the outcome of a call is awaited."""
        return bool(self._calls.awaited)

    # What the listener hears and does.

    def speech(self, until: int) -> None:
        """Take note that speech passes up to an output sample: the waiting sound makes way for it.

        To be called whenever speech is queued or mixed; the router hears none of it itself.
        """
        self.poll()
        self._waiting.speech(until)

    def poll(self) -> None:
        """Take note of cues that have found their pause, and publish them; `handle` and `speech` do so too.

        To be called after frames were mixed, so that they are known at once.
        """
        self._player.poll()

    def begin_turn(self) -> None:
        """Let a new turn's first cue sound, however short the last turn's last one is past."""
        self._player.begin_turn()
        self._known = KnownInStream(self._tools)

    def cancel(self) -> None:
        """Forget the calls under way and end their waiting sound: the turn is over."""
        self._player.end_turn()
        self._all_over()

    def barge_in(self, fade_ms: float = 30.0) -> None:
        """End the turn and every cue of it: what sounds fades, what waits never begins, what comes late is silent."""
        self._calls.give_up()
        self.cancel()
        self._player.silence(fade_ms)

    def hush(self, fade_ms: float = 30.0) -> None:
        """End every cue, the waiting sound too, but await the outcomes: the user speaks, and the tools may run on."""
        self._player.end_turn()
        self._waiting.disarm()
        self._player.silence(fade_ms)

    # The switch, and what is known of the sound.

    @property
    def muted(self) -> bool:
        """Whether cues are off. Switching them off ends those that sound or wait; they stay off until switched on."""
        return self._player.muted

    @muted.setter
    def muted(self, muted: bool) -> None:
        self._player.muted = bool(muted)
        if muted:
            self._player.silence(FADE_MS)
            self._waiting.disarm()

    def mute(self, *cues: str) -> None:
        """Switch some cues off for good, by name; names that neither bank nor rules know raise a `StreamError`."""
        check_cue_names(cues, self._bank, self._rules)
        self._player.mute(cues)
        if self._rules.working in cues:
            self._waiting.disarm()

    def unmute(self, *cues: str) -> None:
        """Switch some cues on again, by name as in `mute`; without names, all."""
        check_cue_names(cues, self._bank, self._rules)
        self._player.unmute(cues)

    @property
    def stats(self) -> RouterStats:
        """Counts of the decisions so far."""
        return self._player.stats

    @property
    def spans(self) -> Spans:
        """When the cues sound."""
        return self._player.spans

    def tell(
        self,
        *,
        after_words: Callable[[Callable[[int], None]], None] | None = None,
        on_played: Callable[[Played], None] | None = None,
    ) -> None:
        """Connect the router with a session.

        Parameters
        ----------
        after_words : takes a function and calls it with the output sample after the last word that was to be spoken so
            far, as soon as that is known. Without it a cue that is to come after the words waits for a pause.
        on_played : is told of every cue that sounds.
        """
        self._player.after_words, self._player.on_played = after_words, on_played

    # The phases of a call.

    def _call_known(self, event: ToolCallStart) -> Played | None:
        call = self._calls.begin(event.tool_call_id, event.tool_name, self._mixer.position)
        if call is None:
            return None
        if not self._known.knows(event.tool_name):
            call.is_told = True
            return self._player.play(self._rules.invented, event, priority=_OUTCOME_PRIORITY)
        self._wait_if_awaited()
        return self._player.play(self._cue_for_tool(event.tool_name), event)

    def _arguments_ended(self, event: ToolCallEnd) -> Played | None:
        if event.status == "ok":
            return None
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if call is not None and call.is_told:
            return None
        self._fail(call)
        cue = self._rules.incomplete if event.status == "incomplete" else self._rules.malformed
        return self._player.play(cue, event, priority=_OUTCOME_PRIORITY)

    def _result_known(self, event: ToolResult) -> Played | None:
        call = self._calls.end(event.tool_call_id, event.tool_name)
        self._wait_if_awaited()
        if call is not None and call.is_told:
            return None
        cue = self._rules.error if event.is_error else self._rules.success
        return self._player.play(cue, event, priority=_OUTCOME_PRIORITY)

    def _invalid(self, event: InvalidToolCall) -> Played | None:
        """A call that must not run: its failure is told now, once."""
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if call is not None and call.is_told:
            return None
        self._fail(call)
        cue = self._rules.invented if event.reason == "unknown_tool" else self._rules.malformed
        return self._player.play(cue, event, priority=_OUTCOME_PRIORITY)

    def _finished(self, event: Finish) -> None:
        if event.reason in _TOOLS_FOLLOW:
            self._wait_if_awaited()
        else:
            self._all_over()

    def _fail(self, call: CallUnderWay | None) -> None:
        if call is not None:
            call.is_told = True
        self._wait_if_awaited()

    def _all_over(self) -> None:
        self._calls.clear()
        self._waiting.disarm()

    def _wait_if_awaited(self) -> None:
        if awaited := self._calls.awaited:
            self._waiting.arm(max(awaited[0].known_at, self._spoke_at))
        else:
            self._waiting.disarm()

    # The sound.

    def _cue_for_tool(self, tool_name: str) -> str | None:
        cue = self._rules.cue_for_tool(tool_name)
        for pattern, name in self._pack_rules:
            if fnmatchcase(tool_name, pattern):
                cue = name
                break
        return f"{MOTIF}:{tool_name}" if cue == MOTIF else cue

    def _working_cue(self) -> Cue | None:
        name = self._rules.working
        if name is None or name not in self._bank or self._player.is_silent(name):
            return None
        return self._bank[name]
