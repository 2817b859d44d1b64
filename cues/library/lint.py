"""Lint of a pack: its `pack.toml`, its sounds, and cues that sound alike."""

import os
from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path

from cues.cue import Cue
from cues.errors import CueError, PackError
from cues.library.audiofile import read_audio
from cues.library.bank import errors_in, make_cue
from cues.library.lint_rules import Found, Problem, as_problems, sound_problems, wearing
from cues.library.pack import PACK_FILE, Override, Pack, read_pack
from cues.library.phrases import SPEECH_LU
from cues.library.shaping import AT_CEILING_DB, CEILING_DBTP, MAX_GAIN_DB, Loop
from cues.meters.similarity import CONFUSABLE, similarity
from cues.synthesis.catalog import CATALOG, usual_lu, usually_loops

__all__ = ["Problem", "check_cue", "check_override", "check_pack"]

_RATE_HZ, _SPEECH_LUFS = 24000, -20.0
_ABOVE_SPEECH_LU, _FAR_BELOW_LU, _LEVEL_LU = -1.5, -25.0, 1.0
_LOUDEST_PHRASE_LU = SPEECH_LU + _LEVEL_LU
_ANY_FIX = "correct the entry; cues new-pack makes a pack that shows every setting"


def check_pack(folder: str | os.PathLike[str]) -> list[Problem]:
    """All problems of a pack: of its `pack.toml`, of each sound in its order, of cues that are hard to tell apart."""
    faults: list[PackError] = []
    try:
        pack = read_pack(Path(folder), faults)
    except PackError as error:
        return [_of_pack(error, Path(folder))]
    problems = [_of_pack(fault, pack.folder, fault.about) for fault in faults]
    finished: list[Cue] = []
    for name, override in pack.cues.items():
        found, cue = check_override(name, override, pack.folder)
        problems += found
        finished += [cue] if cue else []
    at_fault = {fault.about for fault in faults}
    return [*problems, *_unused(pack, at_fault), *_hard_to_tell_apart(finished, pack)]


def check_override(name: str, override: Override, folder: Path) -> tuple[list[Problem], Cue | None]:
    """Problems of one cue of a pack, before and after it is made, and the cue, if it can be made."""
    try:
        problems = _of_file(name, override)
        if any(problem.code == "silent" for problem in problems):
            return problems, None
        cue = make_cue(name, override, _RATE_HZ, _SPEECH_LUFS)
    except CueError as error:
        return [_of_pack(error, folder, name)], None
    if override.file is None and not cue.phrases:
        problems += check_cue(cue)
    else:
        problems += as_problems(name, wearing(cue))
    return [*problems, *as_problems(name, [_without_effect(override), _level(cue, override)])], cue


def check_cue(cue: Cue) -> list[Problem]:
    """Problems of a finished cue: clicks, DC, length, energy outside the telephone band."""
    problems = sound_problems(cue.name, cue.samples, cue.sample_rate, loop=cue.loop, recorded=False)
    return problems + as_problems(cue.name, wearing(cue))


def _of_file(name: str, override: Override) -> list[Problem]:
    loop = usually_loops(name) if override.loop is None else bool(override.loop)
    problems: list[Problem] = []
    with errors_in(override):
        if override.file is not None:
            sound = read_audio(override.file, override.file_name)
            seamless = override.loop is True or (isinstance(override.loop, Loop) and override.loop.period_ms is None)
            problems += sound_problems(name, *sound, loop=loop, trim=override.trim, edges=not seamless)
        for path in override.phrases:
            problems += sound_problems(name, *read_audio(path, path.name), trim=True, speech=True)
    return problems


def _of_pack(error: CueError, folder: Path, where: str = "") -> Problem:
    """Convert an error to a `Problem`; without `where` it is about `pack.toml`, or else about the folder."""
    whole = PACK_FILE if (folder / PACK_FILE).exists() else str(folder)
    message = str(error).removeprefix(f"{folder}/")
    return Problem(where=where or whole, code=PackError.code, message=message, fix=error.fix or _ANY_FIX)


def _unused(pack: Pack, at_fault: Collection[str]) -> Iterator[Problem]:
    """Files named after a cue that the `pack.toml` does not mention, so that the built-in sound plays."""
    for file in pack.unnamed:
        name = Path(file).stem
        if name in CATALOG and not (name in pack.cues or name in at_fault):
            message = f"{PACK_FILE} does not mention it; the built-in {name} plays"
            fix = f'add {name} = "{file}" under [cues], or delete the file'
            yield Problem(where=file, code="unused", message=message, fix=fix)


def _level(cue: Cue, override: Override) -> Found | None:
    """The problem of a cue that is too loud or too quiet against speech, or that the gain limit keeps too quiet."""
    assert cue.measured is not None
    levels = [one.measured for one in (cue, *cue.phrases) if one.measured]
    quietest = min(levels, key=lambda one: (one.missed_lu or 0.0, one.m100_max_lufs))
    level_lu = quietest.m100_max_lufs - _SPEECH_LUFS
    says = f"{level_lu:+.1f} LU against the speech"
    settings = "gain_db or target_lu" if override.normalize else "gain_db"
    usual, most_lu = (SPEECH_LU, _LOUDEST_PHRASE_LU) if cue.phrases else (usual_lu(cue.name), _ABOVE_SPEECH_LU)
    loudest_lu = cue.measured.m100_max_lufs - _SPEECH_LUFS
    if loudest_lu > most_lu:
        aim = "it is as loud as an answer" if cue.phrases else "speech stays intelligible"
        message = f"too loud: {loudest_lu:+.1f} LU against the speech; at most {most_lu:g}, so that {aim}"
        return "too_loud", message, f"lower {settings}; {usual:g} LU is usual for this cue"
    missed = (cue.measured.missed_lu or 0.0) < -_LEVEL_LU
    if not missed and level_lu >= _FAR_BELOW_LU:
        return None
    wanted_lu = (usual if override.target_lu is None else override.target_lu) + override.gain_db
    what = "too quiet" if quietest is cue.measured else "a phrase is too quiet"
    message = f"{what}: {says}" + (f" instead of {wanted_lu:g}" if missed else f"; {_FAR_BELOW_LU:g} is audible")
    if quietest.true_peak_dbtp > CEILING_DBTP - AT_CEILING_DB:
        return "too_quiet", message, f"compress its peaks: they reach the ceiling of {CEILING_DBTP:g} dBTP first"
    more = f"export it louder: the bank adds at most {MAX_GAIN_DB:g} dB" if missed else f"raise {settings}"
    return "too_quiet", message, more


def _without_effect(override: Override) -> Found | None:
    if override.normalize or override.target_lu is None:
        return None
    message = f"target_lu is {override.target_lu:g}, and does nothing with normalize = false"
    return "no_effect", message, "delete one of the two; gain_db changes the level of a file as it is"


def _hard_to_tell_apart(finished: list[Cue], pack: Pack) -> list[Problem]:
    """Confusable pairs: a pack's cues with each other, and with the built-in cues that the pack keeps."""
    left = [make_cue(name, None, _RATE_HZ, _SPEECH_LUFS) for name in CATALOG if name not in pack.cues]
    pairs = [*combinations(finished, 2), *((own, built_in) for own in finished for built_in in left)]
    problems: list[Problem] = []
    for first, second in pairs:
        # A listener tells a looping cue from a single one by its repetition.
        tones = first.loop == second.loop and not (first.phrases or second.phrases)
        alike = similarity(first, second) if tones else 0.0
        if alike >= CONFUSABLE:
            message = f"hard to tell from {second.name!r}: {100 * alike:.0f} % alike in rhythm and melody"
            fix = "give one of them another rhythm or number of notes; pitch and level alone are not noticed"
            problems += as_problems(first.name, [("confusable", message, fix)])
    return problems
