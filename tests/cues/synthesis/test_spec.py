import json
import tomllib

import pytest

import cues
from cues.synthesis.catalog import CATALOG
from cues.synthesis.spec import Envelope, LowPass, Note, Spec


@pytest.mark.parametrize(
    "spec", [entry.spec for entry in CATALOG.values()] + [cues.motif("x")], ids=[*CATALOG, "motif"]
)
def test_a_spec_survives_the_way_through_json(spec):
    assert Spec.from_table(json.loads(json.dumps(spec.to_table()))) == spec


def test_a_spec_can_be_written_by_hand_in_toml():
    text = "notes = [{ hz = 660, length_ms = 120 }]\nenvelope = { attack_ms = 20 }\nlow_pass = { cutoff_hz = 2000 }"
    spec = Spec.from_table(tomllib.loads(text))
    assert spec.notes == (Note(hz=660.0, length_ms=120.0),)
    assert spec.envelope == Envelope(attack_ms=20.0)
    assert spec.low_pass == LowPass(cutoff_hz=2000.0)


def test_a_note_may_be_named():
    text = (
        'notes = [{ hz = "C5", length_ms = 120 }, { note = "A#4", length_ms = 120 }, { hz = "Bb4", length_ms = 120 }]'
    )
    spec = Spec.from_table(tomllib.loads(text))
    assert [note.hz for note in spec.notes] == pytest.approx([523.2511, 466.1638, 466.1638], abs=1e-4)
    assert Note(hz="A4", length_ms=100) == Note(hz=440, length_ms=100)
    assert spec.to_table()["notes"][0]["hz"] == pytest.approx(523.2511, abs=1e-4)


NOTE = {"hz": 660, "length_ms": 100}


@pytest.mark.parametrize(
    ("table", "error", "match"),
    [
        ({}, cues.CueValueError, "Spec lacks 'notes'"),
        ({"notes": 3}, cues.CueTypeError, "Spec.notes is 3; it must be a list"),
        ({"notes": []}, cues.CueValueError, "Spec.notes has 0 entries; it must have 1 to 64"),
        ({"notes": [7]}, cues.CueTypeError, "Note is 7; it must be a table"),
        ({"notes": [{"hz": 660}]}, cues.CueValueError, "Note lacks 'length_ms'"),
        ({"notes": [{**NOTE, "hz": "a"}]}, cues.CueValueError, "Note.hz is 'a'; it must be a number"),
        ({"notes": [{**NOTE, "hz": "C0"}]}, cues.CueValueError, "Note.hz is 16.35"),
        ({"notes": [{**NOTE, "note": "C5"}]}, cues.CueValueError, "Note has both hz and note"),
        ({"notes": [{"note": 5, "length_ms": 1}]}, cues.CueValueError, "Note.hz is 5"),
        ({"notes": [{**NOTE, "hz": True}]}, cues.CueTypeError, "Note.hz is True"),
        ({"notes": [{**NOTE, "hz": float("nan")}]}, cues.CueValueError, "Note.hz is nan"),
        ({"notes": [{**NOTE, "hz": 5}]}, cues.CueValueError, "Note.hz is 5; it must be from 20 to 20000"),
        ({"notes": [{**NOTE, "pitch": 5}]}, cues.CueValueError, "Note has no 'pitch'; it has hz"),
        ({"notes": [NOTE], "gain": 1}, cues.CueValueError, "Spec has no 'gain'"),
        ({"notes": [NOTE], "peak": 2}, cues.CueValueError, "Spec.peak is 2; it must be from 0.001 to 1"),
        ({"notes": [NOTE], "loop": 1}, cues.CueTypeError, "Spec.loop is 1; it must be a bool"),
        ({"notes": [NOTE], "tail_ms": 9950}, cues.CueValueError, "10050 ms long; at most 10000"),
        ({"notes": [NOTE], "envelope": {"attack_ms": 1}}, cues.CueValueError, "attack_ms is 1; it must be from 5"),
        ({"notes": [NOTE], "envelope": {"release_ms": 95}}, cues.CueValueError, "attack and the release, 105"),
        ({"notes": [NOTE], "timbre": {"partials": []}}, cues.CueValueError, "partials has 0 entries"),
        ({"notes": [NOTE], "timbre": {"partials": [0, 0]}}, cues.CueValueError, "at least one level"),
        ({"notes": [NOTE], "timbre": 1}, cues.CueTypeError, "Timbre is 1; it must be a table"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_by_key_value_and_what_is_allowed(table, error, match):
    with pytest.raises(error, match=match):
        Spec.from_table(table)
