"""A real Pipecat pipeline for tests: a tap and an output transport whose device is a list, on a virtual clock."""

import asyncio

import numpy as np
from pipecat.frames.frames import EndFrame, TTSAudioRawFrame, TTSStartedFrame, TTSStoppedFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from cues.signal.pcm import pcm16_of_float
from tests.support.virtual_loop import LoopClock, run_virtually

CHUNK_S = 0.04


class ListTransport(BaseOutputTransport):
    """Plays into a list, one chunk at a time, as slowly as a device would."""

    def __init__(self, clock, params):
        super().__init__(params)
        self._clock = clock
        self._bytes_per_s = params.audio_out_sample_rate * 2 * params.audio_out_channels
        self.written = []

    async def start(self, frame):
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame):
        self.written.append((self._clock.now(), frame.audio))
        await self._clock.sleep(len(frame.audio) / self._bytes_per_s)
        return True


class RunningPipeline:
    """A pipeline of processors and a `ListTransport` with a mixer.

    Attributes
    ----------
    send : queues a frame.
    written : the chunks that were played, each with its time.
    """

    def __init__(self, clock, mixer, before, after=(), *, rate=24000, channels=1):
        params = TransportParams(
            audio_out_enabled=True,
            audio_out_sample_rate=rate,
            audio_out_channels=channels,
            audio_out_mixer=mixer,
            audio_out_end_silence_secs=0,
        )
        transport = ListTransport(clock, params)
        self._worker = PipelineWorker(
            Pipeline([*before, transport, *after]),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
            params=PipelineParams(audio_out_sample_rate=rate),
        )
        self.send, self.written, self.started = self._worker.queue_frame, transport.written, asyncio.Event()

    async def run(self):
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self._worker)

        @self._worker.event_handler("on_pipeline_started")
        async def _on_started(_worker, _frame):
            self.started.set()

        await runner.run()


def run_pipeline(mixer, processors, script, *, rate=24000, channels=1):
    """Run `script(send, clock)` against a pipeline; what was played from time 0 on: (n,) or (n, channels)."""
    return run_virtually(lambda: played_by(mixer, processors, script, rate=rate, channels=channels))


async def played_by(mixer, before, script, after=(), *, rate=24000, channels=1):
    """As `run_pipeline`, in the loop that runs."""
    clock = LoopClock()
    pipeline = RunningPipeline(clock, mixer, before, after, rate=rate, channels=channels)

    async def play():
        await pipeline.started.wait()
        await script(pipeline.send, clock)
        await pipeline.send(EndFrame())

    await asyncio.gather(play(), pipeline.run())
    assert [at for at, _ in pipeline.written] == sorted(at for at, _ in pipeline.written)
    played = np.frombuffer(b"".join(audio for _, audio in pipeline.written), dtype="<i2") / 32768.0
    return played if channels == 1 else played.reshape(-1, channels)


async def say(send, samples, *, rate=24000, channels=1):
    """Send speech as a TTS service does: at once, in one piece."""
    await send(TTSStartedFrame())
    await send(TTSAudioRawFrame(pcm16_of_float(np.asarray(samples, dtype=np.float32)), rate, channels))
    await send(TTSStoppedFrame())
