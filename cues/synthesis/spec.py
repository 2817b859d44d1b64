"""The spec of a cue: notes, timbre and envelope as frozen, hashable data, which `cues.render` renders.

`to_table` and `from_table` convert it to and from the plain tables of packs (TOML) and export sidecars (JSON).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from cues.errors import CueTypeError, CueValueError, did_you_mean
from cues.signal.fades import MIN_FADE_MS
from cues.synthesis.note_names import note_hz
from cues.units import checked_number

__all__ = ["MAX_CUE_MS", "Envelope", "LowPass", "Note", "Spec", "Timbre"]

MAX_CUE_MS = 10_000.0
"""Longest cue (ms)."""
_MAX_PARTIALS = 32
_MAX_NOTES = 64


def _sequence(what: str, value: object, most: int) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        hint = ": (note,) for one" if isinstance(value, Note) else ""
        raise CueTypeError(f"{what} is {value!r}; it must be a list{hint}")
    if not 1 <= len(value) <= most:
        raise CueValueError(f"{what} has {len(value)} entries; it must have 1 to {most}")
    return tuple(value)


def _instance(what: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise CueTypeError(f"{what} is {value!r}; it must be a {kind.__name__}")


def _bounded(low: float, high: float, default: Any = MISSING) -> Any:
    """A field for a number from `low` to `high`."""
    return field(default=default, metadata={"limits": (low, high)})


class _Checked:
    """Checks the numbers of a frozen dataclass against the limits of their fields."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]  # the subclasses are dataclasses
            if "limits" in entry.metadata:
                name = f"{type(self).__name__}.{entry.name}"
                value = checked_number(name, getattr(self, entry.name), *entry.metadata["limits"])
                object.__setattr__(self, entry.name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timbre(_Checked):
    """Harmonics of which the upper ones decay faster, as on a struck bar.

    Parameters
    ----------
    partials : sequence of float
        Linear level of 1 to 32 harmonics from the fundamental, 0 … 1, not all zero.
    damping : float
        Harmonic `k` (from 1) decays at `1 + damping·(k − 1)` times the envelope's rate, 0 … 10.
    """

    partials: tuple[float, ...] = (1.0, 0.3, 0.12, 0.05)
    damping: float = _bounded(0.0, 10.0, 0.6)

    def __post_init__(self) -> None:
        _Checked.__post_init__(self)
        levels = _sequence("Timbre.partials", self.partials, _MAX_PARTIALS)
        levels = tuple(checked_number("Timbre.partials", level, 0.0, 1.0) for level in levels)
        if not any(levels):
            raise CueValueError(f"Timbre.partials is {levels}; at least one level must be above zero")
        object.__setattr__(self, "partials", levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(_Checked):
    """Envelope of each note: raised-cosine attack, exponential decay, raised-cosine release.

    Parameters
    ----------
    attack_ms, release_ms : float
        Lengths of the ramps inside the note, ms, 5 … 2000.
    decay_per_s : float
        Rate of `e^(−rate·t)` from the note's start, 1/s, 0 … 200.
    """

    attack_ms: float = _bounded(MIN_FADE_MS, 2000.0, 10.0)
    decay_per_s: float = _bounded(0.0, 200.0, 12.0)
    release_ms: float = _bounded(MIN_FADE_MS, 2000.0, 40.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowPass(_Checked):
    """Zero-phase low-pass: a Butterworth magnitude weights each harmonic at its instantaneous frequency.

    Parameters
    ----------
    cutoff_hz : float
        −3 dB frequency, Hz, 50 … 20,000.
    order : float
        Slope in steps of 6 dB per octave, 1 … 12.
    """

    cutoff_hz: float = _bounded(50.0, 20_000.0, 3400.0)
    order: float = _bounded(1.0, 12.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(_Checked):
    """One tone of a cue.

    Parameters
    ----------
    hz : float or str
        Fundamental frequency at the note's start, Hz, 20 … 20,000, or the name of a note: `"C5"`. Stored in Hz.
    length_ms : float
        Length, release included, ms, 10 … 10,000.
    start_ms : float
        Offset from the cue's start, ms, 0 … 10,000.
    level_db : float
        Level relative to the other notes, dB, −60 … 20.
    sweep_per_s : float
        Rate of the glide `hz·e^(sweep_per_s·t)`, 1/s, −50 … 50.
    """

    hz: float = _bounded(20.0, 20_000.0)
    length_ms: float = _bounded(2 * MIN_FADE_MS, MAX_CUE_MS)
    start_ms: float = _bounded(0.0, MAX_CUE_MS, 0.0)
    level_db: float = _bounded(-60.0, 20.0, 0.0)
    sweep_per_s: float = _bounded(-50.0, 50.0, 0.0)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            hz: float | str,
            length_ms: float,
            start_ms: float = 0.0,
            level_db: float = 0.0,
            sweep_per_s: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.hz, str):
            if (hz := note_hz(self.hz)) is None:
                raise CueValueError(
                    f"Note.hz is {self.hz!r}; it must be a number from 20 to 20000 Hz, or a note such as 'C5' or 'Bb4'",
                    fix="write a letter from A to G, # or b where the note has one, and the octave",
                )
            object.__setattr__(self, "hz", hz)
        _Checked.__post_init__(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec(_Checked):
    """A cue as data.

    Parameters
    ----------
    notes : sequence of Note
        1 to 64 notes, in any order.
    timbre : Timbre
        Timbre of all notes.
    envelope : Envelope
        Envelope of all notes.
    low_pass : LowPass, optional
        Filter of the timbre.
    peak : float
        Sample peak before loudness normalization, linear full scale, 0.001 … 1.
    tail_ms : float
        Silence after the last note, ms, 0 … 10,000; completes the period of a loop.
    loop : bool
        Whether the cue loops.

    Raises
    ------
    CueTypeError, CueValueError
        If a part has a wrong type or value.
    """

    notes: tuple[Note, ...]
    timbre: Timbre = Timbre()
    envelope: Envelope = Envelope()
    low_pass: LowPass | None = None
    peak: float = _bounded(0.001, 1.0, 0.4)
    tail_ms: float = _bounded(0.0, MAX_CUE_MS, 0.0)
    loop: bool = False

    def __post_init__(self) -> None:
        _Checked.__post_init__(self)
        object.__setattr__(self, "notes", _sequence("Spec.notes", self.notes, _MAX_NOTES))
        for part, kind in (("timbre", Timbre), ("envelope", Envelope), ("loop", bool)):
            _instance(f"Spec.{part}", getattr(self, part), kind)
        if self.low_pass is not None:
            _instance("Spec.low_pass", self.low_pass, LowPass)
        ramps_ms = self.envelope.attack_ms + self.envelope.release_ms
        for note in self.notes:
            _instance("Spec.notes", note, Note)
            if note.length_ms < ramps_ms:
                raise CueValueError(
                    f"Note.length_ms is {note.length_ms:g}; it must hold the attack and the release, "
                    f"{ramps_ms:g} ms together"
                )
        if self.length_ms > MAX_CUE_MS:
            message = f"the spec is {self.length_ms:g} ms long; at most {MAX_CUE_MS:g} ms are allowed"
            raise CueValueError(message, fix="shorten it")

    @property
    def length_ms(self) -> float:
        """Length, tail included, ms."""
        return max(note.start_ms + note.length_ms for note in self.notes) + self.tail_ms

    def to_table(self) -> dict[str, Any]:
        """The spec as nested dicts, lists and numbers, for JSON and TOML."""
        table = asdict(self)
        table["notes"] = list(table["notes"])
        table["timbre"]["partials"] = list(table["timbre"]["partials"])
        if self.low_pass is None:
            del table["low_pass"]
        return table

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Spec:
        """The spec that a table of `to_table` describes; missing keys take their defaults."""
        values = _fields(cls, table)
        notes = values.get("notes")
        if not isinstance(notes, list | tuple):
            raise CueTypeError(f"Spec.notes is {notes!r}; it must be a list of tables")
        values["notes"] = tuple(Note(**_fields(Note, _with_hz(note))) for note in notes)
        for part, kind in _PARTS.items():
            if part in values:
                values[part] = kind(**_fields(kind, values[part]))
        return cls(**values)


def _with_hz(table: object) -> object:
    """The table of a note, with `hz` for its other name `note`."""
    if not isinstance(table, Mapping) or "note" not in table:
        return table
    if "hz" in table:
        raise CueValueError("Note has both hz and note; one is allowed", fix="delete one of them")
    return {("hz" if key == "note" else key): value for key, value in table.items()}


_PARTS: Mapping[str, type[_Checked]] = {"timbre": Timbre, "envelope": Envelope, "low_pass": LowPass}


def _fields(kind: type[Any], table: object) -> dict[str, Any]:
    """`table` as keyword arguments of the dataclass `kind`; unknown and missing keys raise."""
    if not isinstance(table, Mapping):
        raise CueTypeError(f"{kind.__name__} is {table!r}; it must be a table")
    known = {entry.name: entry.default for entry in fields(kind)}
    for key in table:
        if key not in known:
            message = f"{kind.__name__} has no {key!r}; it has {', '.join(known)}{did_you_mean(key, known)}"
            raise CueValueError(message, fix="correct its spelling, or delete it")
    for name, default in known.items():
        if default is MISSING and name not in table:
            raise CueValueError(f"{kind.__name__} lacks {name!r}")
    return dict(table)
