"""The machine's loudspeakers, through miniaudio."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.errors import CueError, MissingFeatureError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["device_names", "play"]

# What swallows sound where there is no device: miniaudio's own, and ALSA's `null`.
_NO_DEVICES = ("NULL Playback Device", "Discard all samples")

_TAIL_S = 0.2
"""What a device may still hold when the last samples were handed over."""


def _miniaudio() -> Any:
    try:
        import miniaudio
    except ImportError as error:
        raise MissingFeatureError("playing needs miniaudio: pip install 'cue-engine[play]'") from error
    return miniaudio


@contextlib.contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep what the system's sound libraries print straight to standard error to themselves."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # no standard error at all
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  (devnull is no path to speak of)
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def device_names() -> list[str]:
    """Names of the devices that can play; empty where there are none.

    Raises
    ------
    MissingFeatureError : miniaudio is not installed.
    """
    miniaudio = _miniaudio()
    try:
        with _quiet_libraries():
            found = [str(device["name"]) for device in miniaudio.Devices().get_playbacks()]
    except miniaudio.MiniaudioError:
        return []
    return [name for name in found if not name.startswith(_NO_DEVICES)]


def play(samples: NDArray[np.float32], sample_rate: int, backends: Sequence[Any] | None = None) -> None:
    """Play `samples` and return when they were heard.

    Parameters
    ----------
    samples : float32, shape `(n_samples,)`, full scale ±1.0.
    sample_rate : Hz.
    backends : of miniaudio, instead of those that the system has.

    Raises
    ------
    MissingFeatureError : miniaudio is not installed.
    CueError : there is no device, or it cannot be opened.
    """
    miniaudio = _miniaudio()
    if backends is None and not device_names():
        raise CueError("no sound device to play on; `cues mix` and `cues export` write files instead")
    done = threading.Event()
    source = _frames(np.pad(samples, (0, round(_TAIL_S * sample_rate))), done)
    next(source)
    try:
        with _quiet_libraries():
            device = miniaudio.PlaybackDevice(
                output_format=miniaudio.SampleFormat.FLOAT32,
                nchannels=1,
                sample_rate=sample_rate,
                backends=backends,
                app_name="cues",
            )
        with device:
            device.start(source)
            done.wait()
    except miniaudio.MiniaudioError as error:
        reason = error.args[0] if error.args else error
        if isinstance(reason, tuple):
            reason = reason[0]
        raise CueError(f"the sound device does not play: {reason}; `cues export` writes files instead") from error


def _frames(samples: NDArray[np.float32], done: threading.Event) -> Generator[bytes | NDArray[np.float32], int, None]:
    """What miniaudio asks for: so many samples each time, until there are none."""
    position = 0
    wanted = yield b""
    while position < len(samples):
        part = samples[position : position + wanted]
        position += wanted
        wanted = yield part
    done.set()
