"""LiveKit's audio input without the cues that the microphone hears."""

from livekit import rtc
from livekit.agents.voice import io

from cues.errors import CueTypeError
from stream.routing.router import CueRouter

__all__ = ["DeafToCues"]


class DeafToCues(io.AudioInput):  # type: ignore[misc]  # the package may be absent where types are checked
    """An audio input that is silent while a cue sounds: for the voice detector and the recognizer alike.

    Parameters
    ----------
    source : AudioInput
        The session's own input.
    router : CueRouter
        The router of the cues.
    within_ms : float
        How long a cue still echoes after it was sent, milliseconds.

    Raises
    ------
    CueTypeError
        If the session has no input yet.
    """

    def __init__(self, source: io.AudioInput | None, router: CueRouter, *, within_ms: float = 300.0) -> None:
        if source is None:
            raise CueTypeError("the session has no audio input; put this around it after `await session.start(…)`")
        super().__init__(label="deaf to cues", source=source)
        self._router, self._within_ms = router, within_ms

    async def __anext__(self) -> rtc.AudioFrame:
        frame: rtc.AudioFrame = await super().__anext__()
        if not self._router.sounded(self._within_ms):
            return frame
        silence = bytes(frame.data.nbytes)
        return rtc.AudioFrame(silence, frame.sample_rate, frame.num_channels, frame.samples_per_channel)
