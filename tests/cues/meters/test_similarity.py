import dataclasses
from itertools import combinations

import pytest

import cues
from cues.library.bank import make_cue
from cues.meters.similarity import CONFUSABLE, similarity
from cues.synthesis.catalog import CATALOG
from tests.support.packs import RATE, rhythm


def cue(samples, rate=RATE):
    return cues.Cue(name="x", samples=samples, sample_rate=rate)


BUILT_IN = {name: make_cue(name, None, 24000, -20.0) for name in CATALOG}


@pytest.mark.parametrize(("first", "second"), [*combinations(CATALOG, 2)])
def test_the_built_in_cues_are_told_apart(first, second):
    assert similarity(BUILT_IN[first], BUILT_IN[second]) < CONFUSABLE - 0.05


@pytest.mark.parametrize("factor", [1.06, 1.19, 1.5], ids=["semitone", "third", "fifth"])
def test_another_pitch_alone_is_no_difference(factor):
    spec = CATALOG["agent"].spec
    notes = tuple(dataclasses.replace(note, hz=factor * note.hz) for note in spec.notes)
    transposed = cue(cues.render(dataclasses.replace(spec, notes=notes)))
    assert similarity(BUILT_IN["agent"], transposed) > CONFUSABLE


def test_another_level_or_rate_alone_is_no_difference_and_another_rhythm_is_one():
    original, other = BUILT_IN["agent"], BUILT_IN["error"]
    assert similarity(original, cue(0.1 * original.samples)) == pytest.approx(1.0)
    assert similarity(original, make_cue("agent", None, 48000, -20.0)) > 0.98
    assert similarity(original, other) == pytest.approx(similarity(other, original), abs=1e-6)
    assert similarity(cue(rhythm(0, 100)), cue(rhythm(0, 100, 200))) < CONFUSABLE
    assert similarity(cue(rhythm(0, 100)), cue(rhythm(0, 250))) < CONFUSABLE
