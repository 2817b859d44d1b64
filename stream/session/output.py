"""The output of a session: the pacer's frames, mixed and written to the sink on a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import cues

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from cues import Mixer

__all__ = ["Output", "Sink"]


class Sink(Protocol):
    """The destination of the sound."""

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Take one frame: the mix, and the speech alone in the same samples."""
        ...


class Output:
    """Writes every frame when it is due, silence too, so that output samples are stream time.

    The pacer gets each frame's nominal time, in order: a late event loop writes the overdue frames at once. The output
    runs `lead_ms` ahead of stream time; `on_frame` is called after each frame.
    """

    def __init__(
        self,
        mixer: Mixer,
        sink: Sink,
        *,
        now_s: Callable[[], float],
        frame_samples: int,
        lead_ms: float,
        on_frame: Callable[[], None],
    ) -> None:
        self._mixer, self._sink, self._now_s, self._on_frame = mixer, sink, now_s, on_frame
        self._frame = frame_samples
        self._n_out = 0
        self._start_s = now_s()
        self._device_s = self._start_s
        self.pacer = cues.Pacer(
            mixer,
            frame_samples=frame_samples,
            lead_ms=lead_ms,
            first_lead_ms=lead_ms,  # The sink's buffer needs it; at nominal times the pacer is never late.
            continuous=True,  # Silence keeps the line open and the sample count going.
            clock=lambda: self._device_s,
        )

    def put_out_what_is_due(self) -> None:
        """Write all frames that are due."""
        now_s = self._now_s()
        while self._next_s <= now_s + 1e-9:
            self._put_out_one()

    def put_out_the_rest(self) -> None:
        """Write at once all that is queued or sounds: the fade of a cancelled turn, at most a second."""
        end = self._mixer.position + self._mixer.sample_rate  # A sound of the caller's own may have no end.
        while (self.pacer.queued_samples or self._mixer.active) and self._mixer.position < end:
            self._put_out_one()

    def until_next_frame_s(self) -> float:
        """Seconds until the next frame is due."""
        return max(self._next_s - self._now_s(), 0.0)

    @property
    def _next_s(self) -> float:
        return self._start_s + self._n_out * self._frame / self._mixer.sample_rate

    def _put_out_one(self) -> None:
        self._device_s = self._next_s
        self._n_out += 1
        for speech in self.pacer.due_speech():
            self._sink.write(self._mixer.mix(speech), speech)
            self._on_frame()
