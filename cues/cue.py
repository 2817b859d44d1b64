"""A cue: a finished sound, ready to be mixed."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.arrays import mono_float32
from cues.errors import CueError
from cues.meters.levels import Measurement
from cues.synthesis.spec import Spec
from cues.units import checked_whole_number

__all__ = ["Cue"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cue:
    """A finished sound, ready to be mixed.

    Parameters
    ----------
    name : str
        Its name in rules and packs.
    samples : float32, shape `(n_samples,)`, full scale ±1.0
        Finite; other float dtypes are converted. They are copied unless they and their owner are read-only.
    sample_rate : int
        Hz, ≥ 1.
    spec : Spec, optional
        The spec that it was rendered from.
    measured : Measurement, optional
        Its loudness and peaks.
    loop : bool
        Whether it loops, as the `working` cue does.
    phrases : tuple of Cue
        Of a cue that is speech: one sounds each time, in turn, and never while speech does. `samples` has all of them.

    Raises
    ------
    CueTypeError, CueValueError
        If `samples` is not 1-D float, finite and non-empty, or the rate is not a whole number ≥ 1.
    """

    name: str
    samples: NDArray[np.float32]
    sample_rate: int = 24000
    spec: Spec | None = None
    measured: Measurement | None = None
    loop: bool = False
    phrases: tuple[Cue, ...] = ()

    def __post_init__(self) -> None:
        try:
            checked_whole_number("sample_rate", self.sample_rate, 1, sys.maxsize)
            samples = mono_float32(self.samples)
        except CueError as error:
            raise error.within(f"cue {self.name!r}: ") from None
        if _writable(samples):
            samples = samples.copy()
        samples.flags.writeable = False
        object.__setattr__(self, "samples", samples)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy or pickle is made anew, so that its samples are read-only, too."""
        return partial(Cue, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

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
        """Player and picture for notebooks."""
        from cues.show.notebook import cue_html

        return cue_html(self)


def _writable(array: object) -> bool:
    """Whether the array or an owner of its memory is writable."""
    return isinstance(array, np.ndarray) and (bool(array.flags.writeable) or _writable(array.base))
