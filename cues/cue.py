"""A cue: a finished sound, ready to be mixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cues.arrays import mono_float32
from cues.errors import CueError, CueTypeError, CueValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.meters.loudness import Measurement
    from cues.synthesis.spec import Spec

__all__ = ["Cue"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cue:
    """A finished sound: samples that a mixer can play as they are.

    Parameters
    ----------
    name : what rules and packs call it.
    samples : float32, shape `(n_samples,)`, full scale ±1.0, finite. Anything float-like is converted; the cue keeps a
        read-only copy unless it is handed a float32 array that is read-only already, down to the memory's owner.
    sample_rate : Hz.
    spec : what it was rendered from, if it was.
    measured : its loudness and peaks, if they were measured.
    loop : whether it is meant to be played in a loop, as the `working` cue is.

    Raises
    ------
    CueTypeError, CueValueError : for samples that are no 1-D, non-empty array of finite numbers, or a rate below 1 Hz.
    """

    name: str
    samples: NDArray[np.float32]
    sample_rate: int = 24000
    spec: Spec | None = None
    measured: Measurement | None = None
    loop: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.sample_rate, bool) or not isinstance(self.sample_rate, int | np.integer):
            raise CueTypeError(
                f"cue {self.name!r}: sample_rate is {self.sample_rate!r}; it must be a whole number of Hz"
            )
        if self.sample_rate < 1:
            raise CueValueError(f"cue {self.name!r}: sample_rate is {self.sample_rate}; it must be at least 1 Hz")
        object.__setattr__(self, "samples", _frozen(self.name, self.samples))

    def __repr__(self) -> str:
        levels = ""
        if self.measured is not None:
            levels = f", {self.measured.m100_max_lufs:.1f} LUFS, {self.measured.true_peak_dbtp:.1f} dBTP"
        return f"<Cue {self.name!r}: {1000 * self.duration_s:.0f} ms at {self.sample_rate} Hz{levels}>"

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate

    def _repr_html_(self) -> str:
        """For notebooks: a player and a picture."""
        from cues.show.notebook import cue_html

        return cue_html(self)


def _frozen(name: str, samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """`samples` as a read-only, contiguous float32 array that nobody else can write to."""
    try:
        mono = mono_float32(samples)
    except CueError as error:
        raise error.within(f"cue {name!r}: ") from None
    frozen = mono.copy() if _writable(mono) else mono
    frozen.flags.writeable = False
    return frozen


def _writable(array: NDArray[np.float32]) -> bool:
    """Whether the array, or one that it is a view of, can be written to."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return False
