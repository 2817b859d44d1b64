import numpy as np
import pytest

from cues.cue import Cue
from cues.library.bank import make_cue
from cues.library.lint import check_cue
from cues.library.lint_rules import sound_problems
from cues.synthesis.catalog import CATALOG
from tests.support.packs import RATE, cut_in_the_middle, naive_saw, rhythm, soft, tone


def codes(samples, **options):
    problems = sound_problems("x", np.asarray(samples, dtype=np.float32), RATE, **options)
    assert all(problem.message and problem.fix and problem.where == "x" for problem in problems)
    return [problem.code for problem in problems]


@pytest.mark.parametrize("name", CATALOG)
@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_nothing_is_wrong_with_the_built_in_cues(name, rate):
    cue = make_cue(name, None, rate, -20.0)
    assert check_cue(cue) == []
    assert [p for p in sound_problems(name, cue.samples, rate, loop=cue.loop) if p.code != "silent_edges"] == []


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (soft(tone(660.0)), []),
        (rhythm(0, 120), []),
        (soft(np.clip(tone(660.0, level=1.5), -0.8, 0.8)), ["clipped"]),
        (soft(tone(660.0, level=1.1)), ["too_loud"]),
        (soft(tone(660.0, 30000)), ["too_long"]),
        (soft(tone(660.0) + 0.01), ["dc"]),
        (cut_in_the_middle(), ["clicks"]),
        (naive_saw(), ["alias"]),
        (tone(660.0, 4807), ["hard_edges"]),
        (np.concatenate([np.zeros(1200), soft(tone(660.0))]), ["silent_edges"]),
        (np.concatenate([soft(tone(660.0)), np.zeros(4800)]), ["silent_edges"]),
        (soft(tone(150.0)), ["telephone"]),
        (soft(tone(5000.0)), ["telephone"]),
        (np.zeros(4800), ["silent"]),
        (1e-5 * soft(tone(660.0)), ["silent"]),
    ],
    ids=lambda value: "-".join(value) or "fine" if isinstance(value, list) else "",
)
def test_each_fault_is_named_and_no_other(samples, expected):
    assert codes(samples) == expected


def test_silence_is_fine_where_it_will_be_cut_off_and_in_a_loop():
    padded = np.concatenate([np.zeros(2400), soft(tone(660.0)), np.zeros(48000)])
    assert codes(padded, trim=True) == codes(padded, loop=True) == []


@pytest.mark.parametrize("options", [{"trim": True}, {"trim": True, "speech": True}], ids=["trimmed", "a phrase"])
def test_a_click_of_which_trimming_leaves_nothing_is_silent(options):
    click = np.zeros(24000, dtype=np.float32)
    click[100] = 0.9
    (problem,) = sound_problems("agent", click, 24000, **options)
    assert problem.code == "silent"


def test_a_decimation_without_a_filter_is_heard_as_alias():
    t = np.arange(28800) / 96000
    rich = sum(np.sin(2 * np.pi * 1900.0 * k * t) / k for k in range(1, 20))
    assert "alias" in codes(soft(0.2 * rich[::4]))


FADING = tone(660.0, 4807) * np.linspace(0.0, 1.0, 4807)


@pytest.mark.parametrize(
    ("samples", "told", "kept_quiet"),
    [
        (FADING, "fade it out to zero over 10 ms", "in from zero"),
        (FADING[::-1], "fade it in from zero over 10 ms", "out to zero"),
        # A tone that begins at zero is hard all the same: its peak is 0.4 ms away.
        (tone(660.0, 4807), "first 0.5 ms reach 100 % of its peak and its last", "nothing"),
        (np.pad(soft(tone(660.0)), (1200, 0)), "50 ms before it", "after"),
        (np.pad(soft(tone(660.0)), (0, 4800)), "200 ms after it", "before"),
    ],
    ids=["hard end", "hard start", "both", "late start", "late end"],
)
def test_the_advice_is_for_the_edge_at_fault(samples, told, kept_quiet):
    problems = sound_problems("x", samples.astype(np.float32), RATE)
    (problem,) = (problem for problem in problems if problem.code in ("hard_edges", "silent_edges"))
    assert told in problem.message + problem.fix
    assert kept_quiet not in problem.message + problem.fix


def looping(samples):
    cue = Cue(name="x", samples=np.asarray(samples, dtype=np.float32), sample_rate=RATE, loop=True)
    return [problem.code for problem in check_cue(cue)]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.pad(soft(tone(660.0)), (0, 24000)), []),
        (np.pad(soft(tone(660.0) + tone(710.0)), (0, 24000)), ["rough"]),
        (np.pad(soft(tone(660.0), ms=2.0), (0, 24000)), ["sharp_onset"]),
        (np.pad(soft(tone(660.0)), (0, 4800)), ["narrow_loop"]),
        (tone(660.0, 24000), []),  # it never begins
    ],
    ids=["fine", "beating", "hard", "fast", "steady"],
)
def test_a_sound_that_repeats_must_not_tire_the_listener(samples, expected):
    assert looping(samples) == expected


def test_what_tires_in_a_loop_is_no_fault_of_a_sound_that_is_heard_once():
    assert codes(soft(tone(660.0) + tone(710.0))) == []
