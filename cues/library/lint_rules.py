"""Lint rules for one sound: problems and their fixes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cues.arrays import Samples
from cues.cue import Cue
from cues.library.shaping import SILENCE_LUFS, trimmed
from cues.meters.clicks import find_clicks
from cues.meters.loudness import measure
from cues.meters.roughness import roughness_asper
from cues.meters.telephone import BAND_HZ
from cues.signal.resample import resample
from cues.units import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE, gain_to_db

__all__ = ["Found", "Problem", "as_problems", "sound_problems", "wearing"]

Found: TypeAlias = tuple[str, str, str]
"""Code, message and fix of a problem."""

MAX_CUE_S = 1.0  # longer ones mask speech; built-in cues last 120 to 280 ms
MAX_TRUE_PEAK_DBTP = -1.0
MAX_DC_OF_PEAK = 0.005
MIN_IN_BAND = 0.6  # share of the energy in the telephone band; the built-in cues have at least 0.8
MAX_LEAD_S, MAX_TAIL_S = 0.015, 0.150
MAX_ROUGHNESS_ASPER = 0.3  # half the depth of modulation of the reference, 1 asper; heard as rough from 0.1 on
MIN_ATTACK_MS = 3.0  # of the envelope, from 20 to 90 % of its peak (Peeters 2004); the built-in cues have 4 or more
MIN_PERIOD_S = 1.0  # faster repetitions are one fluctuating sound, strongest at 4 Hz (Fastl & Zwicker 2007, ch. 10)
_REPEATS = " for a sound that repeats"
_FLAT_RUN, _FLAT = 4, 1e-4
_HARD_EDGE = 0.02
_ALIAS_DB = -45.0
_CONVERTED_HZ = 48000


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding of lint: the cue, rule, file or folder at fault, and its kind for programs (`clipped`, `dc`, …).

    The message has the measured value and what is allowed; `fix` is the remedy, empty if the message says it.
    """

    where: str
    code: str
    message: str
    fix: str


def as_problems(where: str, found: Iterable[Found | None]) -> list[Problem]:
    """Problems of `where`, without the None."""
    return [Problem(where=where, code=code, message=message, fix=fix) for code, message, fix in filter(None, found)]


def sound_problems(
    name: str,
    samples: Samples,
    sample_rate: int,
    *,
    loop: bool = False,
    trim: bool = False,
    edges: bool = True,
    recorded: bool = True,
    speech: bool = False,
) -> list[Problem]:
    """All problems of a sound, before loudness normalization; `name` is their `where`.

    A sound that loops may be long, and silent at its ends; with `trim`, the bank will trim it, so the trimmed sound is
    checked. One from a file (`recorded`) is also checked for headroom, clipping and aliasing, and its `edges` unless it
    loops without silence: the bank crossfades there. A sound at a rate that the meters do not take is converted first.
    """
    if not MIN_SAMPLE_RATE <= sample_rate <= MAX_SAMPLE_RATE:
        samples, sample_rate = resample(samples, sample_rate, _CONVERTED_HZ), _CONVERTED_HZ
    is_silent = measure(samples, sample_rate).m100_max_lufs < SILENCE_LUFS
    if trim and not is_silent:
        samples = trimmed(samples, sample_rate)
        is_silent = not samples.any()  # of a click, the fades at its ends leave nothing
    if is_silent:
        silent = "silent", "there is nothing to hear in it", "replace the file with an audible sound"
        return as_problems(name, [silent])
    checks: list[Callable[[Samples, int], Found | None]] = [_dc, _clicks, _outside_telephone]
    if recorded:
        checks = [_too_hot, _clipped, *checks, *([_hard_edges] if edges else []), _alias]
        checks += [] if loop or trim else [_silent_edges]
    if speech:  # it may last, has plosives, and lies partly below the telephone band
        checks = [_too_hot, _clipped, _dc, _hard_edges]
    elif not loop:
        checks = [_too_long, *checks]
    return as_problems(name, (check(samples, sample_rate) for check in checks))


def wearing(cue: Cue) -> Iterator[Found]:
    """Problems of a sound that repeats, and that a listener therefore tires of: rough, sharp, or too fast."""
    if not cue.loop or cue.phrases:
        return
    rough = roughness_asper(cue.samples, cue.sample_rate)
    if rough > MAX_ROUGHNESS_ASPER:
        message = f"rough: {rough:.2f} asper (Daniel & Weber 1997); at most {MAX_ROUGHNESS_ASPER:g}{_REPEATS}"
        yield "rough", message, "remove beating and fast tremolo: notes less than a minor third apart, 15 to 300 Hz"
    attack_ms = _attack_ms(cue.samples, cue.sample_rate)
    if attack_ms < MIN_ATTACK_MS:
        message = f"sharp onset: it rises within {attack_ms:.1f} ms; at least {MIN_ATTACK_MS:g} ms{_REPEATS}"
        yield "sharp_onset", message, "fade it in over 10 ms or more"
    if cue.duration_s < MIN_PERIOD_S:
        message = f"narrow loop: it repeats after {cue.duration_s:.2f} s; at least {MIN_PERIOD_S:g} s"
        yield "narrow_loop", message, "give the loop a period_ms of 2000 or more, or a longer stretch of the sound"


def _attack_ms(samples: Samples, sample_rate: int) -> float:
    """Time in which the envelope, the peak of each 2 ms so far, rises from 20 to 90 % of its largest."""
    size = max(1, sample_rate // 500)
    blocks = np.lib.stride_tricks.sliding_window_view(np.pad(np.abs(samples), (size, 0), mode="wrap"), size).max(axis=1)
    peak = int(np.argmax(blocks))
    low = np.flatnonzero(blocks[: peak + 1] <= 0.2 * blocks[peak])
    start = int(low[-1]) if blocks[0] <= 0.2 * blocks[peak] else peak
    end = start + int(np.argmax(blocks[start:] >= 0.9 * blocks[peak]))
    return 1000.0 * (end - start) / sample_rate if start < peak else np.inf


def _too_long(samples: Samples, sample_rate: int) -> Found | None:
    length_s = len(samples) / sample_rate
    if length_s <= MAX_CUE_S:
        return None
    message = f"too long: {length_s:.2f} s; at most {MAX_CUE_S:g} s, so that it does not mask speech"
    return "too_long", message, "shorten it to 120–500 ms, or set loop = true if it should play while the work lasts"


def _too_hot(samples: Samples, sample_rate: int) -> Found | None:
    peak_dbtp = measure(samples, sample_rate).true_peak_dbtp
    if peak_dbtp <= MAX_TRUE_PEAK_DBTP:
        return None
    message = f"too loud: its true peak is {peak_dbtp:+.2f} dBTP; at most {MAX_TRUE_PEAK_DBTP:g} leave converters room"
    return "too_loud", message, "export it 6 dB lower; the bank brings it to its level"


def _clipped(samples: Samples, sample_rate: int) -> Found | None:
    """Flat tops: runs of samples at the peak, several of them or one long one."""
    del sample_rate
    magnitude = np.abs(samples)
    flat = np.concatenate([[False], magnitude >= (1.0 - _FLAT) * magnitude.max(), [False]])
    edges = np.flatnonzero(np.diff(flat.astype(np.int8)))
    runs = edges[1::2] - edges[::2]
    held = runs[runs >= _FLAT_RUN]
    if not (len(held) >= 2 or held.max(initial=0) >= 3 * _FLAT_RUN):
        return None
    level_dbfs = gain_to_db(float(magnitude.max()))
    message = f"clipped: {len(held)} flat tops, {held.sum()} samples at {level_dbfs:.1f} dBFS"
    return "clipped", message, "record or render it again at a lower level; clipping cannot be undone"


def _dc(samples: Samples, sample_rate: int) -> Found | None:
    del sample_rate
    dc, peak = float(samples.mean(dtype=np.float64)), float(np.abs(samples).max())
    if abs(dc) <= MAX_DC_OF_PEAK * peak:
        return None
    message = f"DC: its mean is {dc:+.4f}, {100 * abs(dc) / peak:.1f} % of its peak; at most {100 * MAX_DC_OF_PEAK:g} %"
    return "dc", message, "subtract the mean, or high-pass it at 20 Hz: DC thumps at the start and the end of the cue"


def _clicks(samples: Samples, sample_rate: int) -> Found | None:
    edge = round(0.002 * sample_rate)
    clicks = find_clicks(samples, sample_rate)
    inside = clicks[(clicks > edge) & (clicks < len(samples) - edge)]
    if not len(inside):
        return None
    times = ", ".join(f"{1000 * click / sample_rate:.1f}" for click in inside[:5])
    more = ", …" if len(inside) > 5 else ""
    message = f"clicks: {len(inside)}, at {times}{more} ms"
    return "clicks", message, "put a fade of at least 5 ms, flat at both ends, where notes or takes are joined"


def _outside_telephone(samples: Samples, sample_rate: int) -> Found | None:
    power = np.abs(np.fft.rfft(samples.astype(np.float64))) ** 2
    hz = np.fft.rfftfreq(len(samples), 1.0 / sample_rate)
    audible = hz > 20.0
    share = float(power[(hz >= BAND_HZ[0]) & (hz <= BAND_HZ[1])].sum() / max(power[audible].sum(), 1e-30))
    if share >= MIN_IN_BAND:
        return None
    low = float(power[audible & (hz < BAND_HZ[0])].sum()) > float(power[hz > BAND_HZ[1]].sum())
    message = (
        f"telephone: only {100 * share:.0f} % of its energy lies within {BAND_HZ[0]:g}–{BAND_HZ[1]:g} Hz; "
        f"at least {100 * MIN_IN_BAND:g} % keep it audible on a phone"
    )
    return "telephone", message, f"move it {'up, or add harmonics' if low else 'down'}: notes from C5 to C6 carry best"


def _hard_edges(samples: Samples, sample_rate: int) -> Found | None:
    """A sound that starts or ends above silence."""
    few = max(1, round(0.0005 * sample_rate))
    peak = float(np.abs(samples).max())
    edges = {"first": (samples[:few], "in from zero"), "last": (samples[-few:], "out to zero")}
    levels = {edge: float(np.abs(part).max()) / peak for edge, (part, _) in edges.items()}
    hard = [edge for edge, level in levels.items() if level > _HARD_EDGE]
    if not hard:
        return None
    found = " and ".join(f"its {edge} 0.5 ms reach {100 * levels[edge]:.0f} % of its peak" for edge in hard)
    fades = " and ".join(edges[edge][1] for edge in hard)
    fix = f"fade it {fades} over 10 ms, flat at both ends; otherwise the bank adds a fade of 5 ms"
    return "hard_edges", f"hard edges: {found}", fix


def _silent_edges(samples: Samples, sample_rate: int) -> Found | None:
    magnitude = np.abs(samples)
    loud = np.flatnonzero(magnitude > 1e-3 * magnitude.max())
    lead_s, tail_s = loud[0] / sample_rate, (len(samples) - 1 - loud[-1]) / sample_rate
    found = [f"{1000 * lead_s:.0f} ms before it"] if lead_s > MAX_LEAD_S else []
    why = "silence at the start delays the cue" if found else "silence at the end keeps the speech turned down"
    found += [f"{1000 * tail_s:.0f} ms after it"] if tail_s > MAX_TAIL_S else []
    if not found:
        return None
    return "silent_edges", f"silent edges: {' and '.join(found)}", f"set trim = true, or cut the file: {why}"


def _alias(samples: Samples, sample_rate: int) -> Found | None:
    """Harmonics of the strongest tone folded at the Nyquist frequency, or energy just below it."""
    size = max(len(samples), sample_rate // 5)
    spectrum = np.abs(np.fft.rfft(samples * np.blackman(len(samples)), size)) ** 2
    hz = np.fft.rfftfreq(size, 1.0 / sample_rate)
    level_db = 10.0 * np.log10(np.maximum(spectrum / spectrum.max(), 1e-12))
    top = float(level_db[hz > 0.47 * sample_rate].max())
    folded = _folded_hz(level_db, hz, sample_rate)
    if folded is None and top <= _ALIAS_DB:
        return None
    found = f"a folded harmonic at {folded:.0f} Hz" if folded else f"{top:.0f} dB just below half the sample rate"
    fix = "render it band-limited, or convert the sample rate with a filter (soxr HQ)"
    return "alias", f"alias: {found}; at most {_ALIAS_DB:g} dB is allowed", fix


def _folded_hz(level_db: NDArray[np.floating], hz: NDArray[np.floating], sample_rate: int) -> float | None:
    """Frequency of the strongest folded harmonic of the strongest tone, or None."""
    band = (hz > 60.0) & (hz < 0.45 * sample_rate)
    base_hz = float(hz[band][np.argmax(level_db[band])])
    width = max(2.5 * sample_rate / max(len(hz) * 2, 1), 12.0)
    harmonics = base_hz * np.arange(2, 64)
    mirrored = np.abs((harmonics + sample_rate / 2) % sample_rate - sample_rate / 2)[harmonics > 0.5 * sample_rate]
    # Aliasing shows in the lowest folded harmonics too; high ones coincide with other notes by chance.
    mirrored = mirrored[:10]
    # A mirror near a true harmonic is no evidence.
    apart = np.abs(mirrored / base_hz - np.rint(mirrored / base_hz)) * base_hz > 6.0 * width
    strong: dict[float, float] = {}
    for line in mirrored[apart & (mirrored > 60.0) & (mirrored < 0.47 * sample_rate)]:
        distance = np.abs(hz - line)
        level = float(level_db[distance < width].max())
        around = float(np.median(level_db[(distance > 2 * width) & (distance < 8 * width)]))
        if level > max(_ALIAS_DB, around + 20.0):
            strong[float(line)] = level
    # One line may be another note; an aliased tone has several.
    return max(strong, key=strong.__getitem__) if len(strong) >= 3 else None
