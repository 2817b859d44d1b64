import numpy as np
import pytest
import soundfile

from cues.batch.mixing import Mix, sweep
from cues.batch.plan import read_plan
from cues.batch.recordings import find_sources
from cues.batch.run import run_task
from cues.errors import CueError, CueValueError
from cues.synthesis.catalog import CATALOG
from tests.support.listening import steady_voice
from tests.support.packs import soft, tone, write


def plan(tmp_path, text, name="plan.csv"):
    (tmp_path / name).write_text(text)
    return read_plan(tmp_path / name, list(CATALOG))


def mixed(path, cues, output, **pack):
    return run_task(Mix(find_sources(str(path))[0], cues, str(output), **pack))


def test_lines_with_the_same_file_put_several_cues_into_it(tmp_path):
    first, second = plan(
        tmp_path, "file,cue,time_s,gain_db\nx/a.mp3,agent,1,\nb.wav,error,2,-3\nx/a.mp3,success,0.5,\n"
    )
    assert (first.file, first.output) == (str(tmp_path / "x" / "a.mp3"), "x/a.wav")
    assert first.cues == (("agent", 1.0, 0.0), ("success", 0.5, 0.0))
    assert (second.cues, second.output) == ((("error", 2.0, -3.0),), "b.wav")
    (line,) = plan(tmp_path, '{"file": "b.wav", "cue": "error", "time_s": 0, "output": "c.flac"}\n\n', "plan.jsonl")
    assert (line.cues, line.output) == ((("error", 0.0, 0.0),), "c.flac")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("file,cue\na.wav,agent\n", "lacks time_s"),
        ("file,cue,time_s,volume\na.wav,agent,1,2\n", "'volume'"),
        ("file,cue,time_s\na.wav,agnt,1\n", r"line 2: cue is 'agnt'.*did you mean 'agent'"),
        ("file,cue,time_s\na.wav,agent,soon\n", "time_s is 'soon'"),
        ("file,cue,time_s\na.wav,agent,-1\n", "time_s is -1.0"),
        ("file,cue,time_s\na.wav,agent,nan\n", "time_s is nan"),
        ("file,cue,time_s\n,agent,1\n", "lacks file"),
        ("file,cue,time_s,output\na.wav,agent,1,../../x.wav\n", "inside the output folder"),
        ("file,cue,time_s,output\na.wav,agent,1,/etc/x.wav\n", "inside the output folder"),
        ("file,cue,time_s\n../a.wav,agent,1\n../../a.wav,agent,1\n", "would both be written to a.wav"),
        ("file,cue,time_s,output\na.wav,agent,1,b.wav\na.wav,error,1,c.wav\n", "has the output 'b.wav' already"),
        ("", "names no recording; needed: file, cue, time_s"),
        ("file,cue,time_s\na.wav,agent,1,2,3\n", "unknown"),
    ],
    ids=lambda value: None if "\n" in value else value[:24],
)
def test_what_is_wrong_with_a_plan_is_told_with_its_line(tmp_path, text, told):
    with pytest.raises(CueValueError, match=told):
        plan(tmp_path, text)


def test_a_plan_with_a_cell_without_end_cannot_be_read(tmp_path):
    with pytest.raises(CueError, match=r"plan.csv: cannot be read: field larger"):
        plan(tmp_path, 'file,cue,time_s\n"' + "x" * 140000)


def test_phrases_sound_in_all_channels_at_once_after_the_words_of_both(tmp_path):
    write(tmp_path / "one-moment.wav", soft(tone(400.0, 9600)))
    (tmp_path / "pack.toml").write_text('[cues]\nworking = { phrases = ["one-moment.wav"] }\n')
    talk = np.zeros((96000, 2))
    talk[:36000, 0], talk[24000:60000, 1] = steady_voice(1.5), steady_voice(1.5)
    write(tmp_path / "call.wav", talk)
    row = mixed(tmp_path / "call.wav", (("working", 0.5, 0.0),), tmp_path / "out.wav", pack=str(tmp_path))
    assert row["status"] == "ok"
    added = soundfile.read(tmp_path / "out.wav", frames=len(talk))[0] - talk
    assert not np.abs(added[:60000]).max() > 1e-3
    assert np.abs(added[60000:, 0]).max() > 0.01
    np.testing.assert_allclose(added[60000:, 0], added[60000:, 1], atol=1e-4)


KEPT = [
    *[("x.wav", subtype) for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")],
    *[("x.flac", subtype) for subtype in ("PCM_S8", "PCM_16", "PCM_24")],
]


@pytest.mark.parametrize(("name", "subtype"), KEPT)
def test_samples_that_no_cue_touches_stay_exactly_as_they_were(tmp_path, name, subtype):
    noise = np.random.default_rng(1).uniform(-1.0, 1.0, (48000, 2))
    write(tmp_path / name, noise, rate=24000, subtype=subtype)
    row = mixed(tmp_path / name, (("tool_call", 1.0, 0.0),), tmp_path / "out" / name)
    assert (row["status"], row["channels"], row["n_cues"], row["length_s"]) == ("ok", 2, 1, 2.0)
    before, _ = soundfile.read(tmp_path / name, dtype="float64")
    after, rate = soundfile.read(tmp_path / "out" / name, dtype="float64")
    assert soundfile.info(tmp_path / "out" / name).subtype == subtype
    assert (rate, before.shape) == (24000, after.shape)
    assert np.array_equal(before[:20000], after[:20000])
    assert (before[24500:26000] != after[24500:26000]).mean() > 0.7
    assert abs(np.mean(after[24500:26000] - before[24500:26000])) < 0.003, "rounded, not cut off"


@pytest.mark.parametrize(
    ("name", "file_format", "subtype"),
    [("x.wav", "WAV", "IMA_ADPCM"), ("x.wav", "AIFF", "PCM_S8"), ("x.flac", "WAV", "PCM_U8")],
)
def test_a_format_that_cannot_be_kept_becomes_24_bits_with_the_same_values(tmp_path, name, file_format, subtype):
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 48000)
    soundfile.write(tmp_path / "a", noise, 24000, subtype, format=file_format)
    assert mixed(tmp_path / "a", (("tool_call", 1.0, 0.0),), tmp_path / "out" / name)["status"] == "ok"
    assert soundfile.info(tmp_path / "out" / name).subtype == "PCM_24"
    before, after = (soundfile.read(path)[0] for path in (tmp_path / "a", tmp_path / "out" / name))
    assert np.array_equal(before[:20000], after[:20000])


def test_a_cue_at_the_very_end_makes_the_recording_longer_and_one_beyond_it_is_a_row_that_failed(tmp_path):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    assert mixed(tmp_path / "x.wav", (("agent", 1.0, 0.0),), tmp_path / "y.wav")["length_s"] >= 1.26
    row = mixed(tmp_path / "x.wav", (("agent", 2.0, 0.0),), tmp_path / "z.wav")
    assert row["error"] == "a cue at 2 s is after the recording's end, 1.00 s"
    assert not (tmp_path / "z.wav").exists()


def test_an_output_that_cannot_be_written_is_a_row_that_failed_and_leaves_nothing(tmp_path):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    (tmp_path / "y.wav").mkdir()
    row = mixed(tmp_path / "x.wav", (("agent", 0.2, 0.0),), tmp_path / "y.wav")
    assert row["status"] == "failed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.wav", "y.wav"]


def test_half_files_of_a_killed_worker_are_swept_and_nothing_else(tmp_path):
    half, *others = (f".{name}.0a1b2c3d.cues-part" for name in ("y.wav", "z.wav", "y.wavx"))
    for name in (half, *others, half[1:], "y.wav"):
        (tmp_path / name).touch()
    sweep([str(tmp_path / "y.wav"), str(tmp_path / "nowhere" / "y.wav")])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, half[1:], "y.wav"])
