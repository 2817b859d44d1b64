"""The bank: finished cues by name, from the built-in set and a pack."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from cues.arrays import Samples
from cues.cue import Cue
from cues.errors import AudioFileError, CueError, PackError, UnknownCueError, did_you_mean
from cues.library import cache
from cues.library.audiofile import decoded, digest_of, file_bytes, is_exported
from cues.library.pack import MOTIF, PACK_VARIABLE, Override, Pack, find_pack_dir, read_pack
from cues.library.phrases import SPEECH_LU, spoken_cue
from cues.library.shaping import LOOP_PERIOD_MS, Loop, leveled, looped, trimmed, with_soft_edges
from cues.meters.levels import Measurement
from cues.synthesis.catalog import CATALOG, DEFAULT_CUE, RULES, cue_by_rules, usual_lu, usually_loops
from cues.synthesis.motifs import motif
from cues.synthesis.spec import Spec
from cues.units import checked_number, checked_sample_rate

__all__ = ["Bank", "errors_in", "load_bank", "make_cue"]

Finished: TypeAlias = tuple[Samples, Measurement]
_SPEECH_LUFS = (-60.0, 0.0)
_MAX_REMEMBERED = 256
_remembered: dict[str, Finished] = {}
_lock = Lock()
_log = logging.getLogger(__name__)


class Bank(Mapping[str, Cue]):
    """Cues by name, and the cue of a tool by the tool's name. Made by `load_bank`.

    `bank["motif:" + tool_name]` is the motif of a tool (`cues.motif`), rendered at its first use or by `prepare`.
    Iteration skips motifs.

    Attributes
    ----------
    sample_rate : int
        Rate of every cue, Hz.
    speech_lufs : float
        Loudness of the speech that the cues are leveled for, LUFS.
    rules : tuple of (str, str)
        The pack's (tool-name pattern, cue name) pairs. The first match wins; patterns as in `fnmatch.fnmatchcase`.
    profiles : tuple of (str, str)
        The pack's (tool-name pattern, profile) pairs, as in `stream.CueRules`.
    pack_dir : Path or None
        Folder of the pack.
    """

    def __init__(
        self, cues: Mapping[str, Cue], *, sample_rate: int, speech_lufs: float, pack: Pack | None = None
    ) -> None:
        self._cues = dict(cues)
        self.sample_rate = sample_rate
        self.speech_lufs = speech_lufs
        self.rules: tuple[tuple[str, str], ...] = pack.rules if pack else ()
        self.profiles: tuple[tuple[str, str], ...] = pack.profiles if pack else ()
        self.pack_dir: Path | None = pack.folder if pack else None

    def __getitem__(self, name: str) -> Cue:
        if name in self._cues:
            return self._cues[name]
        if _is_motif(name):
            return _motif(name, self.sample_rate, self.speech_lufs)
        hint = did_you_mean(name, self._cues)
        raise UnknownCueError(f"no cue is named {name!r}; the bank holds {', '.join(self._cues)}{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._cues)

    def __len__(self) -> int:
        return len(self._cues)

    def __contains__(self, name: object) -> bool:
        return name in self._cues or _is_motif(name)

    def __repr__(self) -> str:
        return f"<Bank of {', '.join(self._cues)} at {self.sample_rate} Hz for speech at {self.speech_lufs:g} LUFS>"

    def __or__(self, cues: Mapping[str, Cue]) -> Bank:
        """The bank with more cues, which take the place of those of their names."""
        return self.with_cues({**self._cues, **cues}, sample_rate=self.sample_rate)

    def with_cues(self, cues: Mapping[str, Cue], *, sample_rate: int) -> Bank:
        """A bank of these cues, all at `sample_rate` (Hz), with the rules and the level of this one."""
        bank = Bank(cues, sample_rate=sample_rate, speech_lufs=self.speech_lufs)
        bank.rules, bank.profiles, bank.pack_dir = self.rules, self.profiles, self.pack_dir
        return bank

    def name_for(self, tool_name: str) -> str:
        """Name of a tool's cue: by the pack's rules, then the built-in rules, else `tool_call`."""
        cue = cue_by_rules(tool_name, (*self.rules, *RULES)) or DEFAULT_CUE
        return f"{MOTIF}:{tool_name}" if cue == MOTIF else cue

    def cue_for(self, tool_name: str) -> Cue:
        """Cue of a tool; see `prepare` for motifs."""
        return self[self.name_for(tool_name)]

    def prepare(self, tool_names: Iterable[str]) -> None:
        """Render the motifs of these tools before a session, whose loop would wait 5 ms for each at its first call."""
        for tool_name in tool_names:
            self.cue_for(tool_name)


def load_bank(
    pack_dir: str | os.PathLike[str] | None = None, *, sample_rate: int = 24000, speech_lufs: float = -20.0
) -> Bank:
    """All finished cues: the built-in set, with the cues of a pack in place of built-in ones.

    Parameters
    ----------
    pack_dir : path, optional
        Folder of a pack; `""` means no pack. The default is the environment variable `CUES_PACK` (empty: no pack),
        then the folder `cue-engine/pack` in the user's configuration folder, if it exists.
    sample_rate : int
        Rate of the cues, Hz, 8000 … 192,000.
    speech_lufs : float
        Loudness of the speech to mix with, LUFS, −60 … 0. Above −9 the true-peak ceiling limits some built-in cues:
        their `measured.missed_lu` says by how much.

    Returns
    -------
    Bank
        A `Mapping[str, Cue]`.

    Raises
    ------
    PackError
        If the pack cannot be used; the message names file, key, value and what is allowed.
    AudioFileError
        If a file of the pack is not audio or cannot become a cue.
    CueTypeError, CueValueError
        If a parameter is out of range.

    Examples
    --------
    >>> bank = load_bank()
    >>> bank["tool_call"].sample_rate
    24000
    """
    sample_rate = checked_sample_rate(sample_rate)
    speech = checked_number("speech_lufs", speech_lufs, *_SPEECH_LUFS)
    pack = _found_pack(pack_dir)
    if pack and pack.unnamed:
        _log.warning("%s: pack.toml does not use %s", pack.folder, ", ".join(pack.unnamed))
    overrides = {**dict.fromkeys(CATALOG), **(pack.cues if pack else {})}
    cues = {name: make_cue(name, override, sample_rate, speech) for name, override in overrides.items()}
    return Bank(cues, sample_rate=sample_rate, speech_lufs=speech, pack=pack)


def _found_pack(pack_dir: str | os.PathLike[str] | None) -> Pack | None:
    folder = find_pack_dir(pack_dir)
    if folder is None:
        return None
    try:
        return read_pack(folder)
    except PackError as error:
        if pack_dir is None and PACK_VARIABLE in os.environ:  # the user may have forgotten the variable
            raise error.within(f"{PACK_VARIABLE}: ") from error
        raise


def _is_motif(name: object) -> bool:
    return isinstance(name, str) and name.startswith(f"{MOTIF}:")


def make_cue(name: str, override: Override | None, sample_rate: int, speech_lufs: float) -> Cue:
    """One finished cue, from a pack's override of `name` or from the built-in cue; errors begin with their place."""
    override = override or Override(where=name)
    usual = SPEECH_LU if override.phrases else usual_lu(name)
    target_lu = usual if override.target_lu is None else override.target_lu
    level = {"target_lufs": speech_lufs + target_lu if override.normalize else None, "gain_db": override.gain_db}
    with errors_in(override):
        if override.file is not None:
            return _from_file(name, override.file, override, sample_rate, level)
        if override.phrases:
            take = replace(override, trim=True, loop=False)
            takes = [
                _from_file(name, path, replace(take, file_name=path.name), sample_rate, level)
                for path in override.phrases
            ]
            return spoken_cue(name, takes, loop=usually_loops(name) if override.loop is None else bool(override.loop))
        spec = override.spec or CATALOG[name].spec
        if override.loop is None and usually_loops(name) and not spec.loop:
            tail_ms = spec.tail_ms + max(LOOP_PERIOD_MS - spec.length_ms, 0.0)  # as a short file gets
            spec = replace(spec, tail_ms=tail_ms, loop=True)
        recipe = {"spec": spec.to_table(), "rate": sample_rate, **level}
        samples, measured = _finished(recipe, lambda: _rendered(spec, sample_rate, level))
        loop = spec.loop if override.loop is None else bool(override.loop)
        return Cue(name=name, samples=samples, sample_rate=sample_rate, spec=spec, measured=measured, loop=loop)


@lru_cache(maxsize=_MAX_REMEMBERED)  # tool names come from outside: bound the memory
def _motif(name: str, sample_rate: int, speech_lufs: float) -> Cue:
    """Cue of a motif; it stays off the disk, as the loop that mixes may ask for it."""
    spec = motif(name.removeprefix(f"{MOTIF}:"))
    level = {"target_lufs": speech_lufs + usual_lu(name), "gain_db": 0.0}
    samples, measured = _rendered(spec, sample_rate, level)
    return Cue(name=name, samples=samples, sample_rate=sample_rate, spec=spec, measured=measured, loop=spec.loop)


@contextlib.contextmanager
def errors_in(override: Override) -> Iterator[None]:
    """Give errors of the block the place of `override` in its pack."""
    try:
        yield
    except PackError:
        raise
    except CueError as error:
        kind = AudioFileError if isinstance(error, AudioFileError) else PackError
        # In a pack without a `pack.toml`, the place is the file, and the message may already begin with it.
        place = "" if str(error).startswith(f"{override.where}:") else f"{override.where}: "
        raise error.within(place, kind) from error


def _rendered(spec: Spec, sample_rate: int, level: Mapping[str, Any]) -> Finished:
    from cues.synthesis.render import render

    return leveled(render(spec, sample_rate), sample_rate, **level)


def _from_file(name: str, path: Path, override: Override, sample_rate: int, level: Mapping[str, Any]) -> Cue:
    loop = Loop() if override.loop is True else override.loop
    if loop is None and usually_loops(name):
        # A short file without loop settings would repeat too fast: add silence.
        loop = Loop(period_ms=LOOP_PERIOD_MS)
    data = file_bytes(path, override.file_name)
    is_seamless = override.loop is True and not override.trim and is_exported(path, data)
    recipe = {
        "file": digest_of(data),
        "rate": sample_rate,
        **level,
        "trim": override.trim,
        "loop": "seamless" if is_seamless else asdict(loop) if isinstance(loop, Loop) else None,
    }

    def make() -> Finished:
        from cues.signal.resample import resample, resample_loop

        if is_seamless:  # converted as a single sound it would get a seam, and crossfaded anew be shorter
            period = resample_loop(*decoded(data, override.file_name), sample_rate)
            return leveled(period, sample_rate, **level)
        samples = resample(*decoded(data, override.file_name), sample_rate)
        if override.trim:
            samples = trimmed(samples, sample_rate)
        shaped = looped(samples, sample_rate, loop) if isinstance(loop, Loop) else with_soft_edges(samples, sample_rate)
        return leveled(shaped, sample_rate, **level)

    samples, measured = _finished(recipe, make)
    return Cue(name=name, samples=samples, sample_rate=sample_rate, measured=measured, loop=isinstance(loop, Loop))


def _finished(recipe: Mapping[str, Any], make: Callable[[], Finished]) -> Finished:
    """The cue of a recipe, from memory, else from disk, else made and stored in both."""
    key = cache.key_of(recipe)
    found = _remembered.get(key) or cache.load(key)
    if found is None:
        samples, measured = make()
        samples.flags.writeable = False
        found = samples, measured
        cache.store(key, samples, measured)
    with _lock:
        if len(_remembered) >= _MAX_REMEMBERED and key not in _remembered:
            _remembered.pop(next(iter(_remembered)))
        _remembered[key] = found
    return found
