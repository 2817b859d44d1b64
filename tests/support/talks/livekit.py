"""LiveKit: a whole `AgentSession`, whose model calls tools and whose voice is slow."""

import asyncio

from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, Agent, AgentSession, function_tool, tts

from cues.adapters.livekit import attach
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from tests.support.livekit_session import ListSink, ScriptedLLM, call_of
from tests.support.turn_matrix import RATE, VOICE, Played, calls_to_run, result_of


class SlowVoice(tts.TTS):
    """Speaks `VOICE` for any text, `delay_s` later."""

    def __init__(self, delay_s):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1)
        self.delay_s = delay_s

    def synthesize(self, text, *, conn_options=DEFAULT_API_CONNECT_OPTIONS):
        return _SlowStream(tts=self, input_text=text, conn_options=conn_options)


class _SlowStream(tts.ChunkedStream):
    async def _run(self, output_emitter):
        await asyncio.sleep(self._tts.delay_s)
        output_emitter.initialize(request_id="1", sample_rate=RATE, num_channels=1, mime_type="audio/pcm")
        output_emitter.push(pcm16_of_float(VOICE))
        output_emitter.flush()


class Sink(ListSink):
    """The end of the chain."""

    def __init__(self, clock):
        super().__init__(clock)
        self.played = Played(clock)

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        self.played.add(float_of_pcm16(bytes(frame.data)))


class LiveKitTalk:
    holds_s = 0.06

    def __init__(self, turn, clock, **options):
        self._turn, self._clock, self._options = turn, clock, options

    async def __aenter__(self):
        turn = self._turn
        calls, timeout_s = calls_to_run(turn)

        @function_tool
        async def search(text: str) -> str:
            """Search."""
            async with asyncio.timeout(timeout_s):
                return await result_of(next(calls))

        answers = [[turn.think_s, call_of(c.name, {"text": "a"}, f"call_{n}")] for n, c in enumerate(turn.calls)]
        llm = ScriptedLLM([*answers, [turn.think_s, turn.answer]])
        self._session = AgentSession(llm=llm, tts=SlowVoice(turn.voice_s))
        sink = self._session.output.audio = Sink(self._clock)
        await self._session.start(Agent(instructions="test", tools=[search]))
        self.router, self.played = attach(self._session, clock=self._clock, **self._options).router, sink.played
        return self

    async def ask(self):
        self._session.generate_reply(user_input="How is the weather?")

    async def interrupt(self):
        self._session.interrupt(force=True)

    async def __aexit__(self, *_):
        closing = asyncio.create_task(self._session.aclose())
        await asyncio.wait([closing], timeout=30.0)
        closing.cancel()
