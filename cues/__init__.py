"""Audio cues for assistants: synthesis, loudness, packs, and a mixer for live speech.

::

    cues.warm_up()  # once, before serving
    bank = cues.load_bank()
    mixer = cues.Mixer(sample_rate=24000)  # one for each session
    mixer.play(bank["tool_call"])
    out = mixer.mix(frame)  # float32 speech in; the same with the cue in it out

Public names are imported from their modules at first use, so `import cues` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cues.cue import Cue as Cue
    from cues.errors import AudioFileError as AudioFileError
    from cues.errors import CueError as CueError
    from cues.errors import CueTypeError as CueTypeError
    from cues.errors import CueValueError as CueValueError
    from cues.errors import MissingFeatureError as MissingFeatureError
    from cues.errors import MixerClosedError as MixerClosedError
    from cues.errors import PackError as PackError
    from cues.errors import UnknownCueError as UnknownCueError
    from cues.library.audiofile import measure_file as measure_file
    from cues.library.bank import Bank as Bank
    from cues.library.bank import load_bank as load_bank
    from cues.meters.loudness import Measurement as Measurement
    from cues.meters.loudness import Meter as Meter
    from cues.meters.loudness import integrated_lufs as integrated_lufs
    from cues.meters.loudness import measure as measure
    from cues.meters.loudness import true_peak_dbtp as true_peak_dbtp
    from cues.mixing.mixer import Mixer as Mixer
    from cues.mixing.mixer import Voice as Voice
    from cues.mixing.pool import MixerPool as MixerPool
    from cues.mixing.warmup import warm_up as warm_up
    from cues.pacing.pacer import Pacer as Pacer
    from cues.synthesis.motifs import motif as motif
    from cues.synthesis.render import render as render
    from cues.synthesis.spec import Envelope as Envelope
    from cues.synthesis.spec import LowPass as LowPass
    from cues.synthesis.spec import Note as Note
    from cues.synthesis.spec import Spec as Spec
    from cues.synthesis.spec import Timbre as Timbre

_HOMES = {
    name: home
    for home, names in {
        "cues.cue": "Cue",
        "cues.errors": "AudioFileError CueError CueTypeError CueValueError MissingFeatureError MixerClosedError "
        "PackError UnknownCueError",
        "cues.library.bank": "Bank load_bank",
        "cues.library.audiofile": "measure_file",
        "cues.meters.loudness": "Measurement Meter integrated_lufs measure true_peak_dbtp",
        "cues.mixing.mixer": "Mixer Voice",
        "cues.mixing.pool": "MixerPool",
        "cues.mixing.warmup": "warm_up",
        "cues.pacing.pacer": "Pacer",
        "cues.synthesis.motifs": "motif",
        "cues.synthesis.render": "render",
        "cues.synthesis.spec": "Envelope LowPass Note Spec Timbre",
    }.items()
    for name in names.split()
}

_ROOMS = ("adapters", "show")

__version__ = "0.2.0"
__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604  (the keys are strings)


def __getattr__(name: str) -> object:
    """Import a public name, or a subpackage, at its first use (PEP 562)."""
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"cues.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'cues' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
