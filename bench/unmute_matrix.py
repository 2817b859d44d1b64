"""The turns of `tests/support/turn_matrix.py` in unmute's own server with `cues/adapters/unmute.patch`.

    python -m bench.unmute_matrix PATH_TO_A_CHECKOUT_OF_UNMUTE

Needs what `bench/unmute_package.py` needs. unmute takes its time from the event loop, and here that loop's time is
virtual: server, client, model, speech-to-text and text-to-speech talk over sockets of one loop. Samples are read as the
handler emits them and as the client decodes them. Prints a line for each turn, and exits with 1 if one has a fault.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np

from bench.unmute_package import PATCH, copied, run
from bench.unmute_servers import FRAME, Ear, Server, Session, Voice, servers
from stream import CueRules
from tests.support.listening import last_sound, new_clicks, steady_voice
from tests.support.turn_matrix import (
    AUDIBLE,
    HANGS,
    INTERRUPTED,
    PATIENCE_S,
    PERIOD_S,
    RATE,
    STATES,
    THINKING,
    TURNS,
    Call,
    Heard,
    Played,
    Turn,
    check_hang,
    check_silent_after,
    check_whole_turn,
)
from tests.support.unmute_model import Model, called, recording, said
from tests.support.virtual_loop import LoopClock, run_virtually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from stream import Limits
    from stream.replay.recording import Recording

SOUND = steady_voice(2.0)
FOR_EVER_S = 1e6
AHEAD_S = 0.3  # of what the handler emits
FADE_S = 0.03
OPUS_S = 0.04  # a frame, and the decoder's delay


def answer_of(turn: Turn) -> Recording:
    """The model's stream, whose server runs the tools; without an answer, it hands its calls to nobody."""
    steps: list[tuple[float, dict[str, Any]]] = []
    at_s = 0.0
    for number, call in enumerate(turn.calls):
        at_s += turn.think_s
        steps += called(at_s, call.name, '{"a": 1}', index=number)
        if not turn.answer:
            return recording(steps, finish="tool_calls")
        at_s += FOR_EVER_S if call.ends == "never" else call.runs_s
        result = {"role": "tool", "tool_call_id": f"call_1a2b3c4{number}", "content": call.ends}
        steps.append((at_s, {**result, "is_error": call.ends != "success"}))
    return recording([*steps, *said(turn.answer, at_s + turn.think_s)])


class SlowVoice(Voice):
    """Speaks `SOUND` for any text, `delay_s` after its first word."""

    delay_s = 0.0

    async def _speak(self, websocket: Any) -> None:
        await websocket.send(msgpack.packb({"type": "Ready"}))
        words = 0
        async for data in websocket:
            message = msgpack.unpackb(data)
            if message["type"] == "Eos":
                return
            for word in message["text"].split():
                if not words:
                    await wait(websocket, self.delay_s)
                    await self._sound(websocket)
                times = {"start_s": 0.3 * words, "stop_s": 0.3 * words + 0.2}
                await websocket.send(msgpack.packb({"type": "Text", "text": word, **times}))
                words += 1

    async def _sound(self, websocket: Any) -> None:
        for frame in SOUND.reshape(-1, FRAME):
            await websocket.send(msgpack.packb({"type": "Audio", "pcm": frame.tolist()}))


async def wait(websocket: Any, seconds: float) -> None:
    """Sleep, until the client closes."""
    closed = asyncio.ensure_future(websocket.wait_closed())
    await asyncio.wait([closed], timeout=seconds)
    closed.cancel()


@dataclass
class Stage:
    """unmute's server with the other servers, and a client for each turn."""

    server: Server
    model: Model
    voice: SlowVoice
    ear: Ear
    faults: list[str] = field(default_factory=list)

    async def play(
        self, turn: Turn, rules: CueRules, *, limits: Limits | None = None, interrupt_s: float | None = None, **how: Any
    ) -> tuple[Session, Heard, Heard]:
        """The session, what its handler emitted, and what its client decoded."""
        self.model.says, self.voice.delay_s, self.ear.pause = answer_of(turn), turn.voice_s, 0.9
        self.server.options = {"clock": LoopClock(), "rules": rules, "limits": limits}
        session = await self.server.session(during=interrupt_s and self._speaks(interrupt_s), **how)
        sound = None if interrupt_s else SOUND
        asked_s = session.times("response.created")[0]
        emitted, decoded = Played(), Played()
        for at_s, frame in session.frames:
            emitted.add(frame, at_s)
        for at_s, frame in session.decoded():
            decoded.add(frame, at_s)
        heard = emitted.heard(session.handler.cues.router.spans, sound, asked_s=asked_s)
        return session, heard, decoded.heard((), sound, asked_s=asked_s)

    def _speaks(self, after_s: float) -> Callable[[Session], Awaitable[None]]:
        async def speak(_: Session) -> None:
            await asyncio.sleep(after_s)
            self.ear.pause = 0.0
            self.ear.words.append("Wait")

        return speak

    # The turns.

    async def whole(self, turn: Turn, rules: CueRules, *, from_the_call: bool = False) -> str:
        """From the question, or the first call, to the answer's end."""
        session, heard, client = await self.play(turn, rules, more_s=5.0)
        if from_the_call:
            heard = replace(heard, asked=heard.spans[0].start_samples)
            client = replace(client, asked=heard.asked)
        check_whole_turn(turn, heard)
        assert new_clicks(heard.mixed, heard.speech) == []
        assert session.handler.cues.router.is_over
        silence_s = client.longest_silence_s()
        assert silence_s <= PATIENCE_S + PERIOD_S
        level_db = level_of_answer_db(client)
        assert abs(level_db) < 0.5
        assert last_s(client.mixed) < last_s(client.speech) + OPUS_S
        return (
            f"longest silence {silence_s:.2f} s, answer at {level_db:+.2f} dB, cues {', '.join(heard.cues) or 'none'}"
        )

    async def barge_in(self, state: str) -> str:
        """The user speaks in one of the turn's states."""
        session, heard, client = await self.play(INTERRUPTED, THINKING, lasts_s=25.0, interrupt_s=STATES[state])
        at_s = session.times("unmute.interrupted_by_vad")[0]
        check_silent_after(heard, round(at_s * RATE), AHEAD_S + FADE_S)
        assert new_clicks(heard.mixed, np.zeros_like(heard.mixed)) == []
        assert session.handler.cues.router.is_over
        after_s = last_s(client.mixed) - at_s
        assert -PERIOD_S < after_s < AHEAD_S + FADE_S + OPUS_S
        return f"silent {1000.0 * max(after_s, 0.0):.0f} ms after the interruption"

    async def hang(self, name: str, rules: CueRules, *, sounds: bool) -> str:
        """Something hangs forever, under a limit of 20 s."""
        turn, limits = HANGS[name]
        session, heard, client = await self.play(turn, rules, limits=limits, lasts_s=45.0)
        check_hang(heard, "\n".join(session.lines()), sounds=sounds)
        error = [span for span in heard.spans if span.cue == "error"][-1]
        assert error.start_samples / RATE < last_s(client.mixed) < error.end_samples / RATE + OPUS_S
        return f"error cue {(error.start_samples - heard.asked) / RATE:.1f} s after the question"

    async def twice(self, turn: Turn) -> str:
        """Two clients talk at once, one a second later."""

        async def later() -> str:
            await asyncio.sleep(1.0)
            return await self.whole(turn, THINKING)

        return " | ".join(await asyncio.gather(self.whole(turn, THINKING), later()))

    async def handed_over(self) -> str:
        """The stream ends with a call, which nobody runs."""
        turn = Turn((Call("search", 0.0),), answer="")
        session, heard, client = await self.play(turn, THINKING, lasts_s=7.0)
        (cue,) = heard.spans
        assert session.of("response.audio.done")
        assert session.handler.cues.router.is_over
        assert cue.cue == "tool_call"
        assert last_s(heard.mixed) < cue.end_samples / RATE
        assert last_s(client.mixed) < cue.end_samples / RATE + OPUS_S
        return f"silent {last_s(heard.mixed) - cue.start_samples / RATE:.2f} s after the cue began"

    async def closed(self) -> str:
        """The client closes while the tool runs and the waiting sound plays."""
        session, heard, _ = await self.play(TURNS["three chained calls"], THINKING, lasts_s=8.0)
        n_items = len(session.items)
        await asyncio.sleep(30.0)
        assert len(session.items) == n_items
        assert len(heard.waiting) == 1
        assert [record.getMessage() for record in session.logs if record.levelname in {"ERROR", "CRITICAL"}] == []
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "emit_loop()"]
        return "no task and no error is left"

    def all(self) -> Iterator[tuple[str, Awaitable[str]]]:
        """Each turn with its name."""
        for name, turn in TURNS.items():
            yield f"{name}, from the question", self.whole(turn, THINKING)
            if turn.calls:
                yield f"{name}, from the first call", self.whole(turn, CueRules(), from_the_call=True)
        yield "three chained calls, for two clients at once", self.twice(TURNS["three chained calls"])
        yield "a call that nobody runs", self.handed_over()
        yield "a client that closes while a tool runs", self.closed()
        for state in STATES:
            yield f"barge-in while {state}", self.barge_in(state)
        for name in HANGS:
            yield f"{name} that hangs", self.hang(name, THINKING, sounds=True)
            yield f"{name} that hangs, without a waiting sound", self.hang(name, CueRules(working=None), sounds=False)


def last_s(samples: np.ndarray) -> float:
    """When the last sound ends; Opus leaves no exact zeros."""
    return last_sound(samples, AUDIBLE) / RATE


def level_of_answer_db(heard: Heard) -> float:
    """How loud the answer's first 300 ms are beside the voice alone."""
    part = slice(heard.first_word, heard.first_word + round(0.3 * RATE))
    return float(20.0 * np.log10(np.std(heard.mixed[part]) / np.std(heard.speech[part])))


async def perform() -> int:
    """All turns, one after the other; the number of those that have a fault."""
    model, voice, ear, failed = Model(recording(said("Hello."))), SlowVoice(), Ear(), 0
    async with servers(model, voice=voice, ear=ear, clock=LoopClock()) as (stt, tts, llm):
        os.environ |= {"KYUTAI_STT_URL": stt, "KYUTAI_TTS_URL": tts, "KYUTAI_LLM_URL": llm, "KYUTAI_LLM_MODEL": "m"}
        async with Server() as server:
            for name, turn in Stage(server, model, voice, ear).all():
                try:
                    print(f"  ok      {name}: {await turn}", flush=True)
                except Exception:  # noqa: BLE001  (the other turns count, too)
                    failed += 1
                    print(f"  FAILED  {name}: {traceback.format_exc(limit=-2)}", flush=True)
    return failed


def main(checkout: Path) -> int:
    """Patch a copy, and play the turns in it."""
    begin_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as parent:
        folder = copied(checkout, Path(parent) / "unmute")
        run("git", "apply", str(PATCH), cwd=folder).check_returncode()
        sys.path.insert(0, str(folder))
        failed = run_virtually(perform)
    print(
        f"{failed} turns have a fault" if failed else "No turn has a fault", f"({time.perf_counter() - begin_s:.0f} s)"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
